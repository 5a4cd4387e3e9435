import { randomUUID } from 'node:crypto';
import { maxHeaderSize, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { Static } from 'typebox';
import {
  DamagedFile,
  errorCodes,
  InputError,
  inputError,
  type Problem,
  TookTooLong,
  TransientError,
} from '../../base/errors.ts';
import type { System } from '../../context.ts';
import { foldersWritten, isFull, readDisk } from '../../files/disk.ts';
import { MissingFileError } from '../../files/file-store.ts';
import { isCancelledStatement, isDiskFull, isTransient } from '../../postgres/sqlstate.ts';
import { createProbe } from '../../telemetry/health/ready.ts';
import { wentAway } from '../gone-client.ts';
import { formOf, pathOf } from '../paths.ts';
import type { errorRecord } from '../schema.ts';

declare module 'fastify' {
  interface FastifyInstance {
    /**
     * If the path exists only for other methods, sets the header `Allow` and returns the refusal.
     * Otherwise, returns `null`.
     */
    otherMethods: (request: FastifyRequest, reply: FastifyReply) => InputError | null;
  }
}

export function renderErrors(problems: readonly Problem[]): Static<typeof errorRecord.schema> {
  return {
    errors: problems.map(({ code, message, details }) => ({
      error: STATUS_CODES[errorCodes[code]] ?? 'Error',
      error_code: code,
      message,
      details,
    })),
  };
}

export interface Explained {
  readonly status: number;
  readonly problems: readonly Problem[];
}

const frameworkErrors: Readonly<Record<string, Problem['code']>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_BODY_TOO_LARGE: 'payload_too_large',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'invalid_json',
  FST_ERR_CTP_INVALID_JSON_BODY: 'invalid_json',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'invalid_json',
  FST_ERR_BAD_URL: 'invalid_field',
  FST_ERR_MAX_PARAM_LENGTH: 'route_not_found',
  FST_ERR_VALIDATION: 'invalid_field',
};

/** Plugins report a missing file with one of these statuses and an unknown code. */
const pathStatuses: ReadonlySet<unknown> = new Set([400, 403, 404]);

const tookTooLong = 'The database took too long for this; ask for less at a time, or try again later';

/**
 * The only function that converts errors to responses. A caller gets only text that is meant for
 * callers.
 */
export function explainError(error: unknown): Explained {
  if (error instanceof InputError) return { status: error.status, problems: error.problems };
  const code = codeOf(error);
  const mapped = frameworkErrors[code];
  if (mapped !== undefined) return explained(mapped, (error as Error).message);
  if (pathStatuses.has((error as { statusCode?: unknown } | null | undefined)?.statusCode))
    return explained('route_not_found', noSuchAddress);
  if (isDiskFull(error)) return diskFull(code === '53100' ? 'the database' : 'the files');
  if (isCancelledStatement(error) || error instanceof TookTooLong)
    return explained('unavailable', tookTooLong);
  if (error instanceof TransientError || isTransient(error)) {
    return explained('unavailable', 'The service cannot do this at the moment; try again later');
  }
  if (error instanceof MissingFileError || error instanceof DamagedFile)
    return explained('unavailable', 'A stored file that this needs is missing or damaged');
  return explained('internal_error', 'The service failed; the error is in its log under the request id');
}

function diskFull(of: string): Explained {
  return explained('unavailable', 'The disk is full; try again later', `disk of ${of}: no room left`);
}

function explained(code: Problem['code'], message: string, details = ''): Explained {
  return { status: errorCodes[code], problems: [{ code, message, details }] };
}

function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' ? code : '';
}

const retryAfterSeconds: Readonly<Record<number, number>> = { 429: 5, 503: 5 };

export function addErrorHandler(app: FastifyInstance, { log, config }: System): void {
  const fullDisk = createProbe(() => findFullDisk(config), diskProbe);
  const throttle = new Throttle((suppressed) =>
    log.warn({ suppressed }, 'requests refused: more than are logged'),
  );
  app.addHook('onClose', async () => throttle.end());
  app.setErrorHandler(async (error, request, reply) => {
    let explained = explainError(hasLeft(request) ? wentAway() : error);
    const other = explained.status === 404 ? app.otherMethods(request, reply) : null;
    if (other !== null) explained = explainError(other);
    logError(log, throttle, describeError(error, request, explained), request, explained);
    if (explained.status === 503 && explained.problems[0]?.details === '') {
      // On a full disk, an embedded database fails without stating that reason.
      const answer = await fullDisk();
      if ('value' in answer && answer.value !== null) explained = diskFull(answer.value);
    }
    return sendErrors(reply, explained);
  });
}

/** A mount that hangs delays a response by at most 200 ms. */
const diskProbe = { deadlineMs: 200, keepMs: () => 1_000 };

async function findFullDisk(config: System['config']): Promise<string | null> {
  for (const folder of foldersWritten(config)) {
    if (folder === config.dataDir && config.databaseUrl !== null) continue;
    if (isFull(await readDisk(folder))) return folder === config.dataDir ? 'the data directory' : 'the files';
  }
  return null;
}

/**
 * Limits on logged refusals. Refusals with the same environment, route and error code are of one
 * kind.
 */
const windowMs = 10_000;
const linesOfOneKind = 20;
const linesInAll = 200;

/** Prevents logged refusals from filling a disk. */
class Throttle {
  readonly #report: (suppressed: number) => void;
  readonly #lines = new Map<string, number>();
  #inAll = 0;
  #suppressed = 0;
  #window: NodeJS.Timeout | undefined;

  constructor(report: (suppressed: number) => void) {
    this.#report = report;
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

  end(): void {
    clearTimeout(this.#window);
    this.#window = undefined;
    if (this.#suppressed > 0) this.#report(this.#suppressed);
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

interface Line {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly message: string;
  readonly err?: unknown;
}

function hasLeft({ raw }: FastifyRequest): boolean {
  return raw.destroyed && !raw.complete;
}

function describeError(error: unknown, request: FastifyRequest, { status }: Explained): Line {
  if (hasLeft(request)) return { level: 'info', message: 'the client went away' };
  if (status < 500) {
    // Thousands of single records may be refused per second. Metrics count them.
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
  if (level !== 'error' && !throttle.lets(`${environment} ${route} ${error_code}`)) return;
  const fields = { request_id: request.id, method: request.method, route, environment, status, error_code };
  log[level]({ ...fields, ...describeRefusal(request), ...reason }, message);
}

/** Says why the key was refused. This is only for the log, and must not be in the response. */
function describeRefusal({ keyRefusal }: FastifyRequest): object {
  return keyRefusal === null ? {} : { key: keyRefusal.refused, key_id: keyRefusal.keyId };
}

const headProblems: Readonly<Record<string, Problem>> = {
  HPE_HEADER_OVERFLOW: {
    code: 'headers_too_large',
    message: `The headers of the request are larger than ${maxHeaderSize} bytes; send fewer or shorter ones, cookies among them`,
    details: 'the request headers',
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    code: 'upload_too_slow',
    message: 'The request did not come in time',
    details: '',
  },
};
const notHttp: Problem = { code: 'invalid_field', message: 'The request is not proper HTTP', details: '' };

/** Time for the client to read the response. */
const lingerMs = 2_000;

export function answerClientError(
  error: NodeJS.ErrnoException,
  socket: Socket,
  endWithAnswers: (socket: Socket) => boolean,
): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  // Node's `https.request` sends the body of a GET without a length, which is read as a further,
  // invalid request. Only the response to the valid request is sent.
  if (endWithAnswers(socket)) return;
  const problem = headProblems[error.code ?? ''] ?? notHttp;
  const status = errorCodes[problem.code];
  const body = JSON.stringify(renderErrors([problem]));
  const headers = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${randomUUID()}`,
    'x-content-type-options: nosniff',
    'connection: close',
  ];
  socket.end(`${headers.join('\r\n')}\r\n\r\n${body}`);
  // A client that has sent half a request might never close the connection.
  const timer = setTimeout(() => socket.destroy(), lingerMs);
  socket.once('close', () => clearTimeout(timer));
}

const noSuchAddress = 'There is no such address; /docs shows those there are';

/**
 * Responds with 405 if the path exists for other methods, otherwise with 404. Call this function
 * before the routes are added.
 */
export function addNotFound(app: FastifyInstance): void {
  const routes = new Map<string, { readonly form: RegExp; readonly methods: Set<string> }>();
  app.addHook('onRoute', ({ url, method }) => {
    const route = routes.get(url) ?? { form: formOf(url), methods: new Set() };
    for (const each of [method].flat()) route.methods.add(each);
    routes.set(url, route);
  });
  app.decorate('otherMethods', (request, reply) => {
    const path = pathOf(request.url);
    const matches = [...routes].filter(([, { form }]) => form.test(path));
    // A parameter may also match part of another route's path, such as `identify`.
    const exact = matches.filter(([pattern]) => !pattern.includes(':'));
    const candidates = exact.length > 0 ? exact : matches;
    const allow = [...new Set(candidates.flatMap(([, { methods }]) => [...methods]))];
    if (allow.length === 0 || allow.includes(request.method)) return null;
    reply.header('allow', allow.sort().join(', '));
    const message = `${request.method} is not allowed here`;
    return inputError('method_not_allowed', message, `allowed: ${allow.join(', ')}`);
  });
  app.setNotFoundHandler((request, reply) => {
    const details = `${request.method} ${pathOf(request.url)
      .replace(/[^\x20-\x7e]/g, '?')
      .slice(0, 200)}`;
    throw app.otherMethods(request, reply) ?? inputError('route_not_found', noSuchAddress, details);
  });
}
