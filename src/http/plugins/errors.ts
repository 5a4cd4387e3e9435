import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { System } from '../../context.ts';
import { foldersWritten, isFull, readDisk } from '../../files/disk.ts';
import { createProbe } from '../../telemetry/health.ts';
import { renderErrors } from '../error-record.ts';
import { diskFull, type Explained, explainError } from '../explain-error.ts';

/** By status; a refusal that knows better has set its own. */
const retryAfterSeconds: Readonly<Record<number, number>> = { 429: 5, 503: 5 };

/** Answers every error with the error record, and logs it, once. */
export function addErrorHandler(app: FastifyInstance, { log, config }: System): void {
  const whoseDisk = createProbe(() => findFullDisk(config), diskProbe);
  const throttle = new Throttle((suppressed) =>
    log.warn({ suppressed }, 'requests refused: more than are logged'),
  );
  app.addHook('onClose', async () => throttle.end());
  app.setErrorHandler(async (error, request, reply) => {
    let explained = explainError(error);
    logError(log, throttle, describeError(error, request, explained), request, explained);
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

/** Refusals that are logged in a window of time: of one environment, route and code, and in all. */
const windowMs = 10_000;
const linesOfOneKind = 20;
const linesInAll = 200;

/** A caller that is refused thousands of times a second fills no disk: what is not logged is counted, and the count is. */
class Throttle {
  readonly #say: (suppressed: number) => void;
  readonly #lines = new Map<string, number>();
  #inAll = 0;
  #suppressed = 0;
  #window: NodeJS.Timeout | undefined;

  constructor(say: (suppressed: number) => void) {
    this.#say = say;
  }

  lets(kind: string): boolean {
    this.#window ??= setTimeout(() => this.end(), windowMs).unref();
    const lines = this.#lines.get(kind) ?? 0;
    if (lines === linesOfOneKind || this.#inAll === linesInAll) {
      this.#suppressed++;
      return false;
    }
    this.#lines.set(kind, lines + 1);
    this.#inAll++;
    return true;
  }

  /** Of the window; the next begins with the next refusal. */
  end(): void {
    clearTimeout(this.#window);
    this.#window = undefined;
    if (this.#suppressed > 0) this.#say(this.#suppressed);
    this.#lines.clear();
    this.#inAll = 0;
    this.#suppressed = 0;
  }
}

export function sendErrors(reply: FastifyReply, { status, problems }: Explained): FastifyReply {
  setRetryAfter(reply, status);
  return reply
    .code(status)
    .header('content-type', 'application/json; charset=utf-8')
    .send(JSON.stringify(renderErrors(problems)));
}

export function setRetryAfter(reply: FastifyReply, status: number): void {
  const seconds = retryAfterSeconds[status];
  if (seconds !== undefined && !reply.hasHeader('retry-after')) reply.header('retry-after', String(seconds));
}

/** A line of the log about a request that was not served. */
interface Line {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly message: string;
  /** Nothing: the reason is the caller's. */
  readonly err?: unknown;
}

function describeError(error: unknown, request: FastifyRequest, { status }: Explained): Line {
  const { raw } = request;
  if (raw.destroyed && !raw.complete) return { level: 'info', message: 'the client went away' };
  if (status < 500) {
    // Single records come by thousands a second; the metrics count the refused ones.
    const level = request.routeOptions.config.scope === 'ingest' ? 'debug' : 'info';
    return { level, message: 'request refused' };
  }
  if (status === 503) return { level: 'warn', message: 'request cannot be served now', err: error };
  return { level: 'error', message: 'request failed', err: error };
}

function logError(
  log: Logger,
  throttle: Throttle,
  { level, message, ...reason }: Line,
  request: FastifyRequest,
  { status, problems }: Explained,
): void {
  if (!log.isLevelEnabled(level)) return;
  const route = request.routeOptions.url ?? null;
  const environment = request.caller?.environment.name ?? null;
  const error_code = problems[0]?.code;
  // What we are to blame for is always logged.
  if (level !== 'error' && !throttle.lets(`${environment} ${route} ${error_code}`)) return;
  const fields = { request_id: request.id, method: request.method, route, environment, status, error_code };
  log[level]({ ...fields, ...describeRefusal(request), ...reason }, message);
}

/** Which key was refused, and why: callers are not told as much. */
function describeRefusal({ keyRefusal }: FastifyRequest): object {
  return keyRefusal === null ? {} : { key: keyRefusal.refused, key_id: keyRefusal.keyId };
}
