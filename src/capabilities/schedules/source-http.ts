import { basename } from 'node:path';
import { forbiddenAddress, type HttpAnswer, readRetryAfter, sendRequest } from '../../base/http-client.ts';
import type { ScheduleSettings } from './context.ts';
import type { SourceDefinition } from './schema.ts';
import { fillIn, type OpenItem, readItem, type Source, SourceFailure } from './source.ts';

/** Maximum pause that a server can request with `Retry-After`. */
const MAX_RETRY_AFTER_MS = 3_600_000;
/** Time limit for connecting. It is also the default limit for the start of the response. */
export const SOURCE_CONNECT_MS = 20_000;
const MAX_REDIRECTS = 5;

type HttpAccess = Pick<ScheduleSettings, 'variables' | 'allowPrivate' | 'authorities'>;
type Headers = Readonly<Record<string, string>>;

interface Rules extends Pick<HttpAccess, 'allowPrivate' | 'authorities'> {
  readonly allowHttp: boolean;
  /** Time limit for the start of the response, in milliseconds. */
  readonly answerMs: number;
}

/** A request. It is a POST if it has a body, otherwise a GET. */
interface SourceRequest {
  readonly url: URL;
  readonly headers: Headers;
  readonly body?: string;
}

function rulesOf(
  { allow_http, allow_private }: Pick<SourceDefinition<'http'>, 'allow_http' | 'allow_private'>,
  { allowPrivate, authorities }: Pick<HttpAccess, 'allowPrivate' | 'authorities'>,
  answerMs = SOURCE_CONNECT_MS,
): Rules {
  return { allowHttp: allow_http, allowPrivate: allow_private && allowPrivate, authorities, answerMs };
}

/** Opens a file on a web server. Messages contain only the host, because the path may be secret. */
export function openHttp(definition: SourceDefinition<'http'>, access: HttpAccess): Source {
  const rules = rulesOf(definition, access);
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

/** Refuses invalid characters in a header, such as a line feed left at the end of a secret. */
function checkHeader(name: string, value: string): string {
  if (/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) return value;
  throw new SourceFailure('invalid_header', `${name} has a value with characters that no header may have`);
}

/** Returns the file name in a definition's URL. Its placeholders are not filled in. */
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
  return { ...(await openAnswer(answer, host)), version };
}

interface FinalAnswer {
  readonly answer: HttpAnswer;
  readonly host: string;
}

/** Follows redirects. Does not send the headers to another server. @throws SourceFailure */
async function follow(original: SourceRequest, rules: Rules, signal: AbortSignal): Promise<FinalAnswer> {
  let { url, headers } = original;
  let redirects = 0;
  while (true) {
    checkUrl(url, rules);
    const answer = await request({ ...original, url, headers }, rules, signal);
    const next = await nextUrl(answer, url);
    if (next === null) return { answer, host: url.host };
    await answer.close();
    if (redirects === MAX_REDIRECTS || original.body !== undefined) {
      const most = original.body === undefined ? `more than ${MAX_REDIRECTS} times` : 'a POST';
      throw new SourceFailure('too_many_redirects', `${original.url.host} redirects ${most}`);
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
  { url, headers, body }: SourceRequest,
  { answerMs, allowPrivate, authorities }: Rules,
  signal: AbortSignal,
): Promise<HttpAnswer> {
  try {
    return await sendRequest(url, {
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        accept: '*/*',
        ...headers,
        'accept-encoding': body === undefined ? 'gzip, identity' : 'identity',
      },
      body,
      reach: allowPrivate ? 'any' : 'public',
      authorities,
      connectTimeoutMs: SOURCE_CONNECT_MS,
      answerTimeoutMs: answerMs,
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

/** @throws SourceFailure unless the status is 200 and the encoding is one of those requested */
async function openAnswer(answer: HttpAnswer, host: string): Promise<OpenItem> {
  const encoding = (answer.headers['content-encoding'] ?? 'identity').toLowerCase();
  const failure = answer.status === 200 ? encodingFailure(encoding, host) : statusFailure(answer, host);
  if (failure !== null) {
    await answer.close();
    throw failure;
  }
  return {
    bytes: readItem(answer.body, (error) => asFailure(error, host)),
    version: null,
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
 * Returns, as JSON, headers that make the next request conditional. Uses a value only if it is
 * short and plain ASCII.
 */
function versionOf({ headers }: HttpAnswer): string | null {
  const conditions = Object.entries({
    'if-none-match': headers['etag'],
    'if-modified-since': headers['last-modified'],
  }).filter(([, text]) => text !== undefined && /^[\x20-\x7e]{1,200}$/.test(text));
  return conditions.length === 0 ? null : JSON.stringify(Object.fromEntries(conditions));
}
