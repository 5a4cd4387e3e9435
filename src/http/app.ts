import Fastify, { type FastifyInstance } from 'fastify';
import type { System } from '../context.ts';
import { explainError } from './explain-error.ts';
import { addAuth } from './plugins/auth.ts';
import { answerClientError } from './plugins/client-errors.ts';
import { addEarlyAnswer } from './plugins/early-answer.ts';
import { addErrorHandler, sendErrors } from './plugins/errors.ts';
import { addExpectContinue } from './plugins/expect-continue.ts';
import { addNotFound } from './plugins/not-found.ts';
import { addRawBody } from './plugins/raw-body.ts';
import { addRequestId, chooseRequestId } from './plugins/request-id.ts';
import { bulkIdentify } from './routes/bulk-identify.ts';
import { cancelJob } from './routes/cancel-job.ts';
import { createImport } from './routes/create-import.ts';
import { listJobs } from './routes/list-jobs.ts';
import { listRejectsOfJob } from './routes/list-rejects.ts';
import { retryJob } from './routes/retry-job.ts';
import { showJob } from './routes/show-job.ts';

/** Request line and headers must have come by then; a body may take as long as it flows. */
const headersTimeoutMs = 30_000;
/** Longer than the idle time of common load balancers, so that it is they who close. */
const keepAliveTimeoutMs = 75_000;
/** Ids are longer than any path here; what is longer still is an unknown job. */
const maxParamLength = 4_096;

/** The HTTP interface of a system. Never listens: that is `startHttpServer`. */
export function createApp(system: System): FastifyInstance {
  const app = Fastify({
    logger: false,
    genReqId: chooseRequestId,
    requestTimeout: 0,
    keepAliveTimeout: keepAliveTimeoutMs,
    return503OnClosing: false,
    routerOptions: { ignoreTrailingSlash: true, maxParamLength },
    clientErrorHandler: answerClientError,
    frameworkErrors: (error, request, reply) => {
      reply.header('x-request-id', request.id);
      sendErrors(reply, explainError(error));
    },
  });
  app.server.headersTimeout = headersTimeoutMs;
  addExpectContinue(app);
  addErrorHandler(app, system.log);
  addRequestId(app);
  addAuth(app, system);
  addEarlyAnswer(app);
  addNotFound(app);
  addRawBody(app);
  addRoutes(app, system);
  return app;
}

function addRoutes(app: FastifyInstance, system: System): void {
  createImport(app, system);
  bulkIdentify(app, system, 'users');
  bulkIdentify(app, system, 'companies');
  listJobs(app, system);
  showJob(app, system);
  listRejectsOfJob(app, system);
  cancelJob(app, system);
  retryJob(app, system);
}
