import { createdExport } from './created-export.ts';
import { errorRecord } from './error-record.ts';
import { exportItem, exportJob } from './export-job.ts';
import { exportJobDetail } from './export-job-detail.ts';
import { jobDetail, tally } from './job-detail.ts';
import { importRecord, jobListItem, jobRecord } from './job-record.ts';
import { embedItem, keyedItem, propertyItem, segmentItem, surveyItem } from './lookup-items.ts';
import { companyItem, userItem } from './profile-items.ts';
import { reject, rejectPage } from './reject-page.ts';
import { segmentPage } from './segment-page.ts';

/** Every schema that the document names. */
export const components = [
  companyItem,
  createdExport,
  embedItem,
  errorRecord,
  exportItem,
  exportJob,
  exportJobDetail,
  importRecord,
  jobDetail,
  jobListItem,
  jobRecord,
  keyedItem,
  propertyItem,
  reject,
  rejectPage,
  segmentItem,
  segmentPage,
  surveyItem,
  tally,
  userItem,
];
