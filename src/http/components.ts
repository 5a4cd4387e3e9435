import { bulkResult } from './routes/act-on-jobs.ts';
import { batchItem, batchResult } from './routes/batch.ts';
import { createdExport } from './routes/create-export.ts';
import { importRecord } from './routes/create-import.ts';
import { inspection } from './routes/inspect-import.ts';
import { chunkPage, loadChunk } from './routes/list-chunks.ts';
import { jobListItem } from './routes/list-jobs.ts';
import { embedItem, keyedItem, propertyItem, surveyItem, titledItem } from './routes/list-lookups.ts';
import { mappingItem, mappingPage } from './routes/list-mappings.ts';
import { idOutcome, outcomePage } from './routes/list-outcomes.ts';
import { companyPage, userPage } from './routes/list-profiles.ts';
import { reject, rejectPage } from './routes/list-rejects.ts';
import { segmentItem, segmentPage } from './routes/list-segments.ts';
import { eventPageAnswer, storedEvent } from './routes/list-user-events.ts';
import { userSegments } from './routes/list-user-segments.ts';
import { uploadOfLoad } from './routes/load-again.ts';
import { apiKey, issuedKey } from './routes/manage-keys.ts';
import { issuedSubscription, rotatedSecret } from './routes/manage-subscriptions.ts';
import { definitionPreview } from './routes/preview-definition.ts';
import { deletionPreview } from './routes/preview-deletion.ts';
import { exportPreview } from './routes/preview-export.ts';
import { replacementPreview } from './routes/preview-replacement.ts';
import { segmentPreview } from './routes/preview-segment.ts';
import { activity } from './routes/show-activity.ts';
import { exportJob } from './routes/show-export.ts';
import { jobHistory } from './routes/show-history.ts';
import { inboxRecord } from './routes/show-inbox.ts';
import { deletionJobDetail, exportJobDetail, jobDetail, tally } from './routes/show-job.ts';
import { savedMapping } from './routes/show-mapping.ts';
import { overview } from './routes/show-overview.ts';
import { plan } from './routes/show-plan.ts';
import { companyProfile, userProfile } from './routes/show-profile.ts';
import { segmentDetail } from './routes/show-segment.ts';
import { environmentRecord, settingRecord } from './routes/show-settings.ts';
import { errorRecord } from './schemas/answers.ts';
import { cause, causePage, proposal } from './schemas/cause-record.ts';
import { callerRecord, sessionItem } from './schemas/console-session.ts';
import {
  delivery,
  deliveryDetail,
  deliveryPage,
  replayed,
  subscription,
  testDelivery,
} from './schemas/delivery-record.ts';
import { exportItem, jobRecord } from './schemas/job-record.ts';
import { scheduleItem, scheduleList, scheduleRun } from './schemas/schedule-record.ts';
import { uploadRecord } from './schemas/upload-record.ts';
import { companyItem, userItem } from './upload/bodies.ts';

/** Every schema that the document names. */
export const components = [
  activity,
  batchItem,
  batchResult,
  callerRecord,
  bulkResult,
  chunkPage,
  loadChunk,
  jobHistory,
  companyItem,
  companyPage,
  companyProfile,
  createdExport,
  definitionPreview,
  deletionJobDetail,
  deletionPreview,
  delivery,
  apiKey,
  issuedKey,
  environmentRecord,
  settingRecord,
  deliveryDetail,
  deliveryPage,
  inboxRecord,
  replayed,
  subscription,
  issuedSubscription,
  rotatedSecret,
  testDelivery,
  embedItem,
  errorRecord,
  eventPageAnswer,
  exportItem,
  exportJob,
  exportJobDetail,
  exportPreview,
  replacementPreview,
  idOutcome,
  importRecord,
  inspection,
  jobDetail,
  plan,
  jobListItem,
  jobRecord,
  keyedItem,
  mappingItem,
  mappingPage,
  outcomePage,
  overview,
  propertyItem,
  proposal,
  reject,
  cause,
  causePage,
  rejectPage,
  scheduleItem,
  scheduleList,
  scheduleRun,
  segmentDetail,
  savedMapping,
  segmentItem,
  segmentPage,
  segmentPreview,
  sessionItem,
  storedEvent,
  surveyItem,
  tally,
  titledItem,
  uploadOfLoad,
  uploadRecord,
  userItem,
  userPage,
  userProfile,
  userSegments,
];
