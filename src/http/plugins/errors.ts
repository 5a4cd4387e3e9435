import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { renderErrors } from '../error-record.ts';
import { type Explained, explainError } from '../explain-error.ts';

const retryAfterSeconds = 5;

/** Answers every error with the error record, and logs it, once. */
export function addErrorHandler(app: FastifyInstance, log: Logger): void {
  app.setErrorHandler((error, request, reply) => {
    const explained = explainError(error);
    logError(log, error, request, explained);
    return sendErrors(reply, explained);
  });
}

export function sendErrors(reply: FastifyReply, { status, problems }: Explained): FastifyReply {
  if (status === 503) reply.header('retry-after', String(retryAfterSeconds));
  return reply
    .code(status)
    .header('content-type', 'application/json; charset=utf-8')
    .send(JSON.stringify(renderErrors(problems)));
}

function logError(
  log: Logger,
  error: unknown,
  request: FastifyRequest,
  { status, problems }: Explained,
): void {
  const fields = {
    request_id: request.id,
    method: request.method,
    route: request.routeOptions.url ?? null,
    environment: request.caller?.environment.name ?? null,
    status,
  };
  const { raw } = request;
  if (raw.destroyed && !raw.complete) log.info(fields, 'the client went away');
  else if (status < 500) {
    // Single records come by thousands a second; the metrics count the refused ones.
    const level = request.routeOptions.config.scope === 'ingest' ? 'debug' : 'info';
    log[level]({ ...fields, error_code: problems[0]?.code }, 'request refused');
  } else if (status === 503) log.warn({ ...fields, err: error }, 'request cannot be served now');
  else log.error({ ...fields, err: error }, 'request failed');
}
