import type { Socket } from 'node:net';
import Fastify, { type FastifyInstance } from 'fastify';
import type { System } from '../context.ts';
import { MAX_DELETION_BYTES } from '../domain/limits.ts';
import { DocumentText } from './document-text.ts';
import { explainError } from './explain-error.ts';
import { addApiDocs } from './plugins/api-docs.ts';
import { addApiDocument } from './plugins/api-document.ts';
import { addAuth } from './plugins/auth.ts';
import { answerClientError } from './plugins/client-errors.ts';
import { addEarlyAnswer } from './plugins/early-answer.ts';
import { addErrorHandler, sendErrors } from './plugins/errors.ts';
import { addExpectContinue } from './plugins/expect-continue.ts';
import { addHeldAnswers } from './plugins/held-answers.ts';
import { addLoadShedding } from './plugins/load-shedding.ts';
import { addNotFound } from './plugins/not-found.ts';
import { addRateLimit } from './plugins/rate-limit.ts';
import { addRawBody } from './plugins/raw-body.ts';
import { addRequestMetrics } from './plugins/request-metrics.ts';
import { addStandardHeaders, chooseRequestId, setStandardHeaders } from './plugins/standard-headers.ts';
import { addRecordBody } from './record-body.ts';
import { bulkIdentify } from './routes/bulk-identify.ts';
import { cancelExportRoute } from './routes/cancel-export.ts';
import { cancelJob } from './routes/cancel-job.ts';
import { createExport } from './routes/create-export.ts';
import { createImport } from './routes/create-import.ts';
import { deleteProfilesRoute } from './routes/delete-profiles.ts';
import { downloadExportFile } from './routes/download-export-file.ts';
import { identify } from './routes/identify.ts';
import { identifyCompany } from './routes/identify-company.ts';
import { listExportsRoute } from './routes/list-exports.ts';
import { listJobsRoute } from './routes/list-jobs.ts';
import { listLookups } from './routes/list-lookups.ts';
import { listOutcomesOfJob } from './routes/list-outcomes.ts';
import { listRejectsOfJob } from './routes/list-rejects.ts';
import { listSegmentPages } from './routes/list-segments.ts';
import { retryJob } from './routes/retry-job.ts';
import { showDocument } from './routes/show-document.ts';
import { showExport } from './routes/show-export.ts';
import { showJob } from './routes/show-job.ts';
import { showLiveness } from './routes/show-liveness.ts';
import { showMetrics } from './routes/show-metrics.ts';
import { showQueues } from './routes/show-queues.ts';
import { showReadiness } from './routes/show-readiness.ts';
import { showService } from './routes/show-service.ts';
import { track } from './routes/track.ts';

/** How often it is looked for heads of requests that are overdue, at least. */
const headsCheckMs = 5_000;
/** Longer than the idle time of common load balancers, so that it is they who close. */
const keepAliveTimeoutMs = 75_000;
/** Ids are longer than any path here; what is longer still is an unknown job. */
const maxParamLength = 4_096;

/** What whoever listens knows. */
export interface Doors {
  /** It is about to stop. */
  closing: boolean;
  /** The connection is one too many. */
  isBeyond?: (socket: Socket) => boolean;
}

/** The HTTP interface of a system. Never listens: that is `startHttpServer`. */
export function createApp(system: System, doors: Doors = { closing: false }): FastifyInstance {
  const app = Fastify({
    logger: false,
    genReqId: chooseRequestId,
    // A body may take as long as it flows.
    requestTimeout: 0,
    http: { connectionsCheckingInterval: Math.min(headsCheckMs, system.config.uploadStallMs) },
    keepAliveTimeout: keepAliveTimeoutMs,
    return503OnClosing: false,
    routerOptions: { ignoreTrailingSlash: true, maxParamLength },
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
  addRequestMetrics(app, system);
  addLoadShedding(app, system, undefined, doors);
  addHeldAnswers(app);
  addAuth(app, system);
  addRateLimit(app, system);
  addEarlyAnswer(app);
  addNotFound(app);
  addRawBody(app);
  addApiDocument(app);
  // In a scope of their own, because that waits for the plugins before it.
  app.register(async (scope) => addRoutes(scope, system, doors));
  return app;
}

function addRoutes(app: FastifyInstance, system: System, doors: Doors): void {
  const document = new DocumentText(app);
  createImport(app, system);
  bulkIdentify(app, system, 'users');
  bulkIdentify(app, system, 'companies');
  listJobsRoute(app, system);
  showJob(app, system);
  listRejectsOfJob(app, system);
  listOutcomesOfJob(app, system);
  cancelJob(app, system);
  retryJob(app, system);
  listExportsRoute(app, system);
  showExport(app, system);
  cancelExportRoute(app, system);
  downloadExportFile(app, system);
  listSegmentPages(app, system);
  listLookups(app, system);
  showService(app, system);
  showLiveness(app);
  showReadiness(app, system, doors);
  showMetrics(app, system);
  showDocument(app, system, document);
  showQueues(app, system);
  addApiDocs(app, system, document);
  app.register(async (scope) => {
    addRecordBody(scope, { timeoutMs: system.config.uploadStallMs });
    identify(scope, system);
    track(scope, system);
    identifyCompany(scope, system);
    createExport(scope, system);
  });
  app.register(async (scope) => {
    addRecordBody(scope, { timeoutMs: system.config.uploadStallMs, maxBytes: MAX_DELETION_BYTES });
    deleteProfilesRoute(scope, system, 'users');
    deleteProfilesRoute(scope, system, 'companies');
  });
}
