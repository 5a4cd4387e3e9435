import { basename } from 'node:path';
import { forbiddenAddress, type HttpAnswer, readRetryAfter, sendRequest } from '../../base/http-client.ts';
import type { ScheduleSettings } from './context.ts';
import type { SourceDefinition } from './schema.ts';
import { fillIn, type OpenItem, readItem, type Source, SourceFailure } from './source.ts';

/** Limit for `Retry-After`. */
const MAX_RETRY_AFTER_MS = 3_600_000;
/** Time limit for connecting, and again for waiting until the response begins. */
export const SOURCE_CONNECT_MS = 20_000;
const MAX_REDIRECTS = 5;

type HttpAccess = Pick<ScheduleSettings, 'variables' | 'allowPrivate' | 'authorities'>;
type Headers = Readonly<Record<string, string>>;

interface Rules extends Pick<HttpAccess, 'allowPrivate' | 'authorities'> {
  readonly allowHttp: boolean;
}

interface SourceRequest {
  readonly url: URL;
  readonly headers: Headers;
}

/** Messages contain only the host, because the path may be secret. */
export function openHttp(definition: SourceDefinition<'http'>, access: HttpAccess): Source {
  const { allow_http: allowHttp, allow_private } = definition;
  const { allowPrivate, authorities } = access;
  const rules = { allowHttp, allowPrivate: allow_private && allowPrivate, authorities };
  return {
    async list() {
      const url = readUrl(fillIn(definition.url, access.variables));
      const headers = Object.fromEntries(
        Object.entries(definition.headers).map(([name, value]) => [
          name,
          checkHeader(name, fillIn(value, access.variables)),
        ]),
      );
      return [
        {
          key: definition.url,
          filename: nameOf(definition.url),
          version: null,
          open: (lastVersion, signal) => openPage({ url, headers }, rules, lastVersion, signal),
        },
      ];
    },
  };
}

/** Refuses a value that no header may have, for example a secret that ends with a line feed. */
function checkHeader(name: string, value: string): string {
  if (/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) return value;
  throw new SourceFailure('invalid_header', `${name} has a value with characters that no header may have`);
}

function nameOf(url: string): string {
  const path = url.replace(/[?#].*$/s, '').replace(/^https?:\/\/[^/]*/, '');
  return basename(path).slice(0, 200) || 'download';
}

function readUrl(text: string, base?: URL): URL {
  const url = URL.canParse(text, base?.href) ? new URL(text, base) : null;
  if (url === null)
    throw new SourceFailure('invalid_url', 'The URL, or the one it redirects to, is not a URL');
  if (url.username === '' && url.password === '') return url;
  throw new SourceFailure('invalid_url', 'The URL, or the one it redirects to, has a user or a password');
}

async function openPage(
  { url, headers }: SourceRequest,
  rules: Rules,
  lastVersion: string | null,
  signal: AbortSignal,
): Promise<OpenItem | 'unchanged'> {
  const conditions = lastVersion === null ? {} : (JSON.parse(lastVersion) as Headers);
  const conditional = { url, headers: { ...headers, ...conditions } };
  const { answer, host } = await follow(conditional, rules, signal);
  const version = versionOf(answer);
  if (answer.status === 304 || (answer.status === 200 && version !== null && version === lastVersion)) {
    await answer.close();
    return 'unchanged';
  }
  return openAnswer(answer, host, version);
}

interface FinalAnswer {
  readonly answer: HttpAnswer;
  readonly host: string;
}

/**
 * Follows redirects. Does not send the headers to another server.
 * @throws SourceFailure
 */
async function follow(original: SourceRequest, rules: Rules, signal: AbortSignal): Promise<FinalAnswer> {
  let { url, headers } = original;
  let redirects = 0;
  while (true) {
    checkUrl(url, rules);
    const answer = await request({ url, headers }, rules, signal);
    const next = await nextUrl(answer, url);
    if (next === null) return { answer, host: url.host };
    await answer.close();
    if (redirects === MAX_REDIRECTS) {
      const message = `${original.url.host} redirects more than ${MAX_REDIRECTS} times`;
      throw new SourceFailure('too_many_redirects', message);
    }
    if (url.protocol === 'https:' && next.protocol !== 'https:') {
      throw new SourceFailure('insecure_redirect', `${url.host} redirects to an unencrypted address`);
    }
    if (next.origin !== url.origin) headers = {};
    url = next;
    redirects += 1;
  }
}

function checkUrl(url: URL, rules: Rules): void {
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && rules.allowHttp)) {
    throw new SourceFailure(
      'insecure_url',
      `${url.host} is not reached by https://, and allow_http is not set`,
    );
  }
}

async function request(
  { url, headers }: SourceRequest,
  { allowPrivate, authorities }: Rules,
  signal: AbortSignal,
): Promise<HttpAnswer> {
  try {
    return await sendRequest(url, {
      method: 'GET',
      headers: { accept: '*/*', ...headers, 'accept-encoding': 'gzip, identity' },
      reach: allowPrivate ? 'any' : 'public',
      authorities,
      connectTimeoutMs: SOURCE_CONNECT_MS,
      answerTimeoutMs: SOURCE_CONNECT_MS,
      signal,
    });
  } catch (error) {
    throw signal.aborted ? error : asFailure(error, url.host);
  }
}

function asFailure(error: unknown, host: string): SourceFailure {
  if (error instanceof SourceFailure) return error;
  const { code = 'an unknown error', name, message } = error as NodeJS.ErrnoException;
  if (code === forbiddenAddress) {
    const rule = 'allow_private and SCHEDULES_ALLOW_PRIVATE would both have to allow it';
    return new SourceFailure('private_address', `${message}; ${rule}`);
  }
  const isSilent = name === 'TimeoutError';
  const reason = isSilent ? 'does not answer' : `cannot be reached: ${code}`;
  return new SourceFailure(isSilent ? 'no_answer' : 'unreachable', `${host} ${reason}`, {
    isTransient: true,
    cause: error,
  });
}

const redirections = new Set([301, 302, 303, 307, 308]);

async function nextUrl(answer: HttpAnswer, url: URL): Promise<URL | null> {
  const { location } = answer.headers;
  if (!redirections.has(answer.status) || location === undefined) return null;
  try {
    return readUrl(location, url);
  } catch (error) {
    await answer.close();
    throw error;
  }
}

async function openAnswer(answer: HttpAnswer, host: string, version: string | null): Promise<OpenItem> {
  const encoding = (answer.headers['content-encoding'] ?? 'identity').toLowerCase();
  const failure = answer.status === 200 ? encodingFailure(encoding, host) : statusFailure(answer, host);
  if (failure !== null) {
    await answer.close();
    throw failure;
  }
  return {
    bytes: readItem(answer.body, (error) => asFailure(error, host)),
    version,
    hints: { contentType: answer.headers['content-type'], contentEncodingGzip: encoding === 'gzip' },
    close: () => answer.close(),
  };
}

function encodingFailure(encoding: string, host: string): SourceFailure | null {
  if (encoding === 'gzip' || encoding === 'identity') return null;
  return new SourceFailure('unexpected_encoding', `${host} answers in an encoding that was not asked for`);
}

/**
 * Code of a failure that affects only the item being opened. After any other failure, the other
 * items could not be opened either.
 */
export const unexpectedStatus = 'unexpected_status';

function statusFailure({ status, headers }: HttpAnswer, host: string): SourceFailure {
  const isTransient = status >= 500 || status === 408 || status === 425 || status === 429;
  const isRefused = status === 401 || status === 403;
  const retryAfterMs = Math.min(readRetryAfter(headers['retry-after'], Date.now()) ?? 0, MAX_RETRY_AFTER_MS);
  return new SourceFailure(
    isRefused ? 'access_denied' : unexpectedStatus,
    `${host} answers with status ${status}${isRefused ? ': check the key and what it may do' : ''}`,
    { isTransient, retryAfterMs },
  );
}

/**
 * Returns headers, as JSON, that make the next request conditional. Uses only headers with short,
 * plain ASCII values.
 */
function versionOf({ headers }: HttpAnswer): string | null {
  const conditions = Object.entries({
    'if-none-match': headers['etag'],
    'if-modified-since': headers['last-modified'],
  }).filter(([, text]) => text !== undefined && /^[\x20-\x7e]{1,200}$/.test(text));
  return conditions.length === 0 ? null : JSON.stringify(Object.fromEntries(conditions));
}
