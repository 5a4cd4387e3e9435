import { embedItem, keyedItem, propertyItem, surveyItem, titledItem } from '../api/definition.ts';
import { deletionJobDetail, deletionPreview, idOutcome, outcomePage } from '../api/deletion.ts';
import {
  delivery,
  deliveryDetail,
  deliveryPage,
  issuedSubscription,
  replayed,
  rotatedSecret,
  subscription,
  testDelivery,
} from '../api/delivery.ts';
import { environmentRecord, settingRecord } from '../api/environment.ts';
import { errorRecord } from '../api/error.ts';
import { activity, eventPageAnswer, storedEvent } from '../api/event.ts';
import { createdExport, exportItem, exportJob, exportJobDetail, exportPreview } from '../api/export.ts';
import { inboxRecord } from '../api/inbox.ts';
import { inspection } from '../api/inspection.ts';
import { bulkResult, jobHistory, jobListItem, jobRecord } from '../api/job.ts';
import { apiKey, issuedKey } from '../api/key.ts';
import { chunkPage, importRecord, jobDetail, loadChunk, tally } from '../api/load.ts';
import { mappingItem, mappingPage, savedMapping } from '../api/mapping.ts';
import { overview } from '../api/overview.ts';
import { plan } from '../api/plan.ts';
import { companyPage, companyProfile, userPage, userProfile } from '../api/profile.ts';
import { batchItem, batchResult, companyItem, userItem } from '../api/record.ts';
import { cause, causePage, proposal, reject, rejectPage, replacementPreview } from '../api/reject.ts';
import { scheduleItem, scheduleList, scheduleRun } from '../api/schedule.ts';
import {
  definitionPreview,
  segmentDetail,
  segmentItem,
  segmentPage,
  segmentPreview,
  userSegments,
} from '../api/segment.ts';
import { callerRecord, sessionItem } from '../api/session.ts';
import { uploadOfLoad, uploadRecord } from '../api/upload.ts';

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
