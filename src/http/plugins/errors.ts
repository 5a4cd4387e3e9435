import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { System } from '../../context.ts';
import { foldersWritten, isFull, readDisk } from '../../files/disk.ts';
import { createProbe } from '../../telemetry/probe.ts';
import { renderErrors } from '../error-record.ts';
import { diskFull, type Explained, explainError } from '../explain-error.ts';

const retryAfterSeconds = 5;

/** Answers every error with the error record, and logs it, once. */
export function addErrorHandler(app: FastifyInstance, { log, config }: System): void {
  const whoseDisk = createProbe(() => findFullDisk(config), diskProbe);
  app.setErrorHandler(async (error, request, reply) => {
    let explained = explainError(error);
    logError(log, error, request, explained);
    if (explained.status === 503 && explained.problems[0]?.details === '') {
      // An embedded database that has no room left is away, and does not say why.
      const found = await whoseDisk();
      if ('value' in found && found.value !== null) explained = diskFull(found.value);
    }
    return sendErrors(reply, explained);
  });
}

/** A mount that hangs holds up no answer for longer, and is asked once a second at most. */
const diskProbe = { deadlineMs: 200, keepMs: () => 1_000 };

/** Whose disk, of those that this process writes to; null if there is room on all. */
async function findFullDisk(config: System['config']): Promise<string | null> {
  for (const folder of foldersWritten(config)) {
    if (folder === config.dataDir && config.databaseUrl !== null) continue;
    if (isFull(await readDisk(folder))) return folder === config.dataDir ? 'the data directory' : 'the files';
  }
  return null;
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
    ...describeRefusal(request),
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

/** Which key was refused, and why: callers are not told as much. */
function describeRefusal({ keyRefusal }: FastifyRequest): object {
  return keyRefusal === null ? {} : { key: keyRefusal.refused, key_id: keyRefusal.keyId };
}
