/*
 * The HTTP server. `createApp` puts the plugins and routes together; a route is one file in `routes/` with
 * its schema, handler and answer. Promises: every refusal is the one error record; every request has an id;
 * no answer waits for a client that does not read.
 */
import type { Socket } from 'node:net';
import accepts from '@fastify/accepts';
import type { FastifyInstance } from 'fastify';
import Fastify from 'fastify';
import { components } from '../api/schema.ts';
import type { System } from '../context.ts';
import { entities } from '../domain/entity.ts';
import {
  MAX_BATCH_BYTES,
  MAX_DELETION_BYTES,
  MAX_HELD_BATCH_BYTES,
  MAX_HELD_BATCH_BYTES_PER_ENVIRONMENT,
} from '../domain/limits.ts';
import { addApiDocs, addApiDocument, DocumentText } from './plugins/api-document.ts';
import { addAuth } from './plugins/auth.ts';
import {
  addErrorHandler,
  addNotFound,
  answerClientError,
  explainError,
  sendErrors,
} from './plugins/errors.ts';
import { addJsonBody } from './plugins/json-body.ts';
import { addLingeringClose } from './plugins/lingering-close.ts';
import { addLoadShedding } from './plugins/load-shedding.ts';
import { addRateLimit } from './plugins/rate-limit.ts';
import { addExpectContinue, addForms, addRawBody } from './plugins/request-body.ts';
import { addRequestMetrics } from './plugins/request-metrics.ts';
import { addSlowReaderLimits } from './plugins/slow-readers.ts';
import { addStandardHeaders, chooseRequestId, setStandardHeaders } from './plugins/standard-headers.ts';
import { addTracing } from './plugins/tracing.ts';
import { addValidation } from './plugins/validation.ts';
import { actOnJobsRoute } from './routes/act-on-jobs.ts';
import { amendJob } from './routes/amend-job.ts';
import { appendUploadRoute } from './routes/append-upload.ts';
import { applyPlanOfJob } from './routes/apply-plan.ts';
import { batch } from './routes/batch.ts';
import { bulkIdentify } from './routes/bulk-identify.ts';
import { cancelExportRoute } from './routes/cancel-export.ts';
import { cancelJob } from './routes/cancel-job.ts';
import { chooseEnvironment, consoleSession } from './routes/console-session.ts';
import { createEnvironmentRoute } from './routes/create-environment.ts';
import { createExport } from './routes/create-export.ts';
import { createImport } from './routes/create-import.ts';
import { createUploadRoute } from './routes/create-upload.ts';
import { deleteMapping } from './routes/delete-mapping.ts';
import { deleteProfilesRoute } from './routes/delete-profiles.ts';
import { downloadExportFile } from './routes/download-export-file.ts';
import { editRejects } from './routes/edit-rejects.ts';
import { identify } from './routes/identify.ts';
import { identifyCompany } from './routes/identify-company.ts';
import { inspectImport } from './routes/inspect-import.ts';
import { listChunksRoute } from './routes/list-chunks.ts';
import { listDeliveriesRoute, showDelivery } from './routes/list-deliveries.ts';
import { listExportsRoute } from './routes/list-exports.ts';
import { listJobsRoute } from './routes/list-jobs.ts';
import { listLookups } from './routes/list-lookups.ts';
import { listMappingsRoute } from './routes/list-mappings.ts';
import { listOutcomesOfJob } from './routes/list-outcomes.ts';
import { listProfilesRoute } from './routes/list-profiles.ts';
import { listRejectsOfJob } from './routes/list-rejects.ts';
import { listScheduleRuns } from './routes/list-schedule-runs.ts';
import { listSchedules } from './routes/list-schedules.ts';
import { listSegmentPages } from './routes/list-segments.ts';
import { listSubscriptionsRoute, testSubscription } from './routes/list-subscriptions.ts';
import { listUploadsRoute } from './routes/list-uploads.ts';
import { listUserEvents } from './routes/list-user-events.ts';
import { listUserSegments } from './routes/list-user-segments.ts';
import { loadAgain } from './routes/load-again.ts';
import { issueKeys, listKeys } from './routes/manage-keys.ts';
import { addSubscriptionRoutes, removeSubscriptionRoute } from './routes/manage-subscriptions.ts';
import { pauseScheduleRoute } from './routes/pause-schedule.ts';
import { previewDefinition } from './routes/preview-definition.ts';
import { previewDeletionRoute } from './routes/preview-deletion.ts';
import { previewExportRoute } from './routes/preview-export.ts';
import { previewReplacement } from './routes/preview-replacement.ts';
import { previewSegmentRoute } from './routes/preview-segment.ts';
import { removeUploadRoute } from './routes/remove-upload.ts';
import { replayDeliveryRoutes } from './routes/replay-deliveries.ts';
import { retryJob } from './routes/retry-job.ts';
import { runSchedule } from './routes/run-schedule.ts';
import { saveMappingRoute } from './routes/save-mapping.ts';
import { showActivity } from './routes/show-activity.ts';
import { showConsole } from './routes/show-console.ts';
import { showDocument } from './routes/show-document.ts';
import { showExport } from './routes/show-export.ts';
import { showHistory } from './routes/show-history.ts';
import { showInbox, takeInAgainRoute } from './routes/show-inbox.ts';
import { showJob } from './routes/show-job.ts';
import { showLiveness } from './routes/show-liveness.ts';
import { showMapping } from './routes/show-mapping.ts';
import { showMetrics } from './routes/show-metrics.ts';
import { showOverview } from './routes/show-overview.ts';
import { showPlanOfJob } from './routes/show-plan.ts';
import { showProfile } from './routes/show-profile.ts';
import { showReadiness } from './routes/show-readiness.ts';
import { showSegment } from './routes/show-segment.ts';
import { showService } from './routes/show-service.ts';
import { showSettings } from './routes/show-settings.ts';
import { showUpload } from './routes/show-upload.ts';
import { signInRoute } from './routes/sign-in.ts';
import { watch } from './routes/stream.ts';
import { track } from './routes/track.ts';
import { validateKey } from './routes/validate-key.ts';
import { addTus } from './schemas/upload-record.ts';

/** How often it is looked for heads of requests that are overdue, at least. */
const headsCheckMs = 5_000;
/** Longer than the idle time of common load balancers, so that it is they who close. */
const keepAliveTimeoutMs = 75_000;
/** Ids are longer than any path here; what is longer still is an unknown job. */
const maxParamLength = 4_096;

/** What the one who listens tells the app. */
export interface ServerState {
  /** The server is about to stop. */
  closing: boolean;
  /** The connection is one too many. */
  isBeyond?: (socket: Socket) => boolean;
}

/** The HTTP interface of a system. Never listens: that is `startHttpServer`. */
export function createApp(system: System, state: ServerState = { closing: false }): FastifyInstance {
  const app = Fastify({
    logger: false,
    genReqId: chooseRequestId,
    trustProxy: system.config.trustProxy,
    // A body may take as long as it flows.
    requestTimeout: 0,
    http: { connectionsCheckingInterval: Math.min(headsCheckMs, system.config.uploadStallMs) },
    keepAliveTimeout: keepAliveTimeoutMs,
    return503OnClosing: false,
    // `{base_url}/` and `/v1/track` are often put together as they are.
    routerOptions: { ignoreTrailingSlash: true, ignoreDuplicateSlashes: true, maxParamLength },
    clientErrorHandler: answerClientError,
    frameworkErrors: (error, request, reply) => {
      setStandardHeaders(request, reply);
      sendErrors(reply, explainError(error));
    },
  });
  app.server.headersTimeout = system.config.uploadStallMs;
  addExpectContinue(app);
  addErrorHandler(app, system);
  addStandardHeaders(app);
  addTracing(app, system);
  addRequestMetrics(app, system);
  addLoadShedding(app, system, undefined, state);
  addSlowReaderLimits(app);
  addAuth(app, system);
  addRateLimit(app, system);
  addLingeringClose(app);
  addNotFound(app);
  addRawBody(app);
  addValidation(app);
  addApiDocument(app, components);
  app.register(accepts);
  // In a scope of their own, because that waits for the plugins before it.
  app.register(async (scope) => addRoutes(scope, system, state));
  return app;
}

function addRoutes(app: FastifyInstance, system: System, state: ServerState): void {
  const document = new DocumentText(app);
  app.register(async (scope) => {
    addForms(scope);
    createImport(scope, system);
    inspectImport(scope, system);
    amendJob(scope, system);
    bulkIdentify(scope, system, 'users');
    bulkIdentify(scope, system, 'companies');
  });
  app.register(async (scope) => {
    addTus(scope);
    createUploadRoute(scope, system);
    listUploadsRoute(scope, system);
    showUpload(scope, system);
    appendUploadRoute(scope, system);
    removeUploadRoute(scope, system);
  });
  loadAgain(app, system);
  watch(app, system);
  listJobsRoute(app, system);
  showJob(app, system);
  showOverview(app, system);
  showHistory(app, system);
  listChunksRoute(app, system);
  listRejectsOfJob(app, system);
  listOutcomesOfJob(app, system);
  showPlanOfJob(app, system);
  cancelJob(app, system);
  retryJob(app, system);
  listMappingsRoute(app, system);
  showMapping(app, system);
  deleteMapping(app, system);
  listExportsRoute(app, system);
  showExport(app, system);
  cancelExportRoute(app, system);
  downloadExportFile(app, system);
  listSegmentPages(app, system);
  listLookups(app, system);
  for (const entity of entities) {
    showProfile(app, system, entity);
    listProfilesRoute(app, system, entity);
    showActivity(app, system, entity);
  }
  listUserEvents(app, system);
  listUserSegments(app, system);
  showSegment(app, system);
  previewSegmentRoute(app, system);
  listSchedules(app, system);
  showInbox(app, system);
  listKeys(app, system);
  showSettings(app, system);
  takeInAgainRoute(app, system);
  listDeliveriesRoute(app, system);
  showDelivery(app, system);
  listSubscriptionsRoute(app, system);
  removeSubscriptionRoute(app, system);
  testSubscription(app, system);
  listScheduleRuns(app, system);
  pauseScheduleRoute(app, system, 'pause');
  pauseScheduleRoute(app, system, 'resume');
  validateKey(app);
  consoleSession(app, system);
  showConsole(app, system);
  showService(app, system);
  showLiveness(app);
  showReadiness(app, system, state);
  showMetrics(app, system);
  showDocument(app, system, document);
  addApiDocs(app, system, document);
  app.register(async (scope) => {
    addJsonBody(scope, { timeoutMs: system.config.uploadStallMs });
    identify(scope, system);
    track(scope, system);
    identifyCompany(scope, system);
    createExport(scope, system);
    actOnJobsRoute(scope, system, 'cancel');
    actOnJobsRoute(scope, system, 'retry');
    applyPlanOfJob(scope, system);
    previewReplacement(scope, system);
    editRejects(scope, system);
    previewExportRoute(scope, system);
    previewDefinition(scope, system);
    saveMappingRoute(scope, system);
    runSchedule(scope, system);
    replayDeliveryRoutes(scope, system);
    issueKeys(scope, system);
    createEnvironmentRoute(scope, system);
    addSubscriptionRoutes(scope, system);
    signInRoute(scope, system);
    chooseEnvironment(scope, system);
  });
  app.register(async (scope) => {
    const timeoutMs = system.config.uploadStallMs;
    const held = { bytes: MAX_HELD_BATCH_BYTES, perEnvironment: MAX_HELD_BATCH_BYTES_PER_ENVIRONMENT };
    addJsonBody(scope, { timeoutMs, maxBytes: MAX_BATCH_BYTES, ndjson: true, held });
    batch(scope, system);
  });
  app.register(async (scope) => {
    addJsonBody(scope, { timeoutMs: system.config.uploadStallMs, maxBytes: MAX_DELETION_BYTES });
    deleteProfilesRoute(scope, system, 'users');
    deleteProfilesRoute(scope, system, 'companies');
    for (const entity of entities) previewDeletionRoute(scope, system, entity);
  });
}
