/*
 * The HTTP server. `createApp` puts the plugins and routes together; a file of `routes/` holds
 * the routes of one noun, each with its schema, handler and answer. Promises: every refusal is the one error record; every request has an id;
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
import { amendJob } from './routes/amendments.ts';
import { batch } from './routes/batch.ts';
import { deleteProfilesRoute, previewDeletionRoute } from './routes/deletions.ts';
import { listDeliveriesRoute, replayDeliveryRoutes, showDelivery } from './routes/deliveries.ts';
import { createEnvironmentRoute, showSettings } from './routes/environments.ts';
import { listUserEvents, track } from './routes/events.ts';
import { downloadExportFile } from './routes/export-files.ts';
import {
  cancelExportRoute,
  createExport,
  listExportsRoute,
  previewExportRoute,
  showExport,
} from './routes/exports.ts';
import { identify, identifyCompany } from './routes/identify.ts';
import { bulkIdentify, createImport, inspectImport } from './routes/imports.ts';
import { showInbox, takeInAgainRoute } from './routes/inbox.ts';
import { actOnJobsRoute, cancelJob, loadAgain, retryJob } from './routes/job-actions.ts';
import { listChunksRoute, listJobsRoute, listOutcomesOfJob, showHistory, showJob } from './routes/jobs.ts';
import { issueKeys, listKeys, validateKey } from './routes/keys.ts';
import { listLookups } from './routes/lookups.ts';
import { deleteMapping, listMappingsRoute, saveMappingRoute, showMapping } from './routes/mappings.ts';
import { showOverview } from './routes/overview.ts';
import { applyPlanOfJob, showPlanOfJob } from './routes/plans.ts';
import { listProfilesRoute, showActivity, showProfile } from './routes/profiles.ts';
import { editRejects, listRejectsOfJob, previewReplacement } from './routes/rejects.ts';
import { listScheduleRuns, listSchedules, pauseScheduleRoute, runSchedule } from './routes/schedules.ts';
import {
  listSegmentPages,
  listUserSegments,
  previewDefinition,
  previewSegmentRoute,
  showSegment,
} from './routes/segments.ts';
import {
  showConsole,
  showDocument,
  showLiveness,
  showMetrics,
  showReadiness,
  showService,
} from './routes/service.ts';
import { chooseEnvironment, consoleSession, signInRoute } from './routes/session.ts';
import { watch } from './routes/stream.ts';
import {
  addSubscriptionRoutes,
  listSubscriptionsRoute,
  removeSubscriptionRoute,
  testSubscription,
} from './routes/subscriptions.ts';
import {
  appendUploadRoute,
  createUploadRoute,
  listUploadsRoute,
  removeUploadRoute,
  showUpload,
} from './routes/uploads.ts';
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
