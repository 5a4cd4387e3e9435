import { createdExport } from './created-export.ts';
import { deletionJobDetail } from './deletion-job-detail.ts';
import { errorRecord } from './error-record.ts';
import { exportItem, exportJob } from './export-job.ts';
import { exportJobDetail } from './export-job-detail.ts';
import { jobDetail, tally } from './job-detail.ts';
import { importRecord, jobListItem, jobRecord } from './job-record.ts';
import { embedItem, keyedItem, propertyItem, segmentItem, surveyItem } from './lookup-items.ts';
import { idOutcome, outcomePage } from './outcome-page.ts';
import { companyItem, userItem } from './profile-items.ts';
import { reject, rejectPage } from './reject-page.ts';
import { segmentPage } from './segment-page.ts';

/** Every schema that the document names. */
export const components = [
  companyItem,
  createdExport,
  deletionJobDetail,
  embedItem,
  errorRecord,
  exportItem,
  exportJob,
  exportJobDetail,
  idOutcome,
  importRecord,
  jobDetail,
  jobListItem,
  jobRecord,
  keyedItem,
  outcomePage,
  propertyItem,
  reject,
  rejectPage,
  segmentItem,
  segmentPage,
  surveyItem,
  tally,
  userItem,
];
