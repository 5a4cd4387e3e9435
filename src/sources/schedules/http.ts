import { basename } from 'node:path';
import { MAX_REDIRECTS, SOURCE_CONNECT_MS } from '../../domain/limits.ts';
import { forbiddenAddress, type HttpAnswer, sendRequest } from '../../net/http-client.ts';
import type { SourceDefinition } from './schedules-schema.ts';
import { fillIn, type OpenItem, readItem, type Source, SourceFailure, type Variables } from './source.ts';

interface HttpAccess {
  readonly variables: Variables;
  readonly allowPrivate: boolean;
  /** PEM of authorities to trust instead of those that Node trusts; null: those. */
  readonly authorities: string | null;
}

type Headers = Readonly<Record<string, string>>;
type Rules = Pick<HttpAccess, 'allowPrivate' | 'authorities'> & { readonly allowHttp: boolean };

/** Opens one file of a web server. Messages name hosts only, since paths and queries may hold secrets. */
export function openHttp(definition: SourceDefinition<'http'>, access: HttpAccess): Source {
  const { authorities } = access;
  const allowPrivate = definition.allow_private && access.allowPrivate;
  const rules = { allowHttp: definition.allow_http, allowPrivate, authorities };
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
          open: (known, signal) => openPage(url, headers, rules, known, signal),
        },
      ];
    },
  };
}

/** A line feed at the end of a secret is soon overlooked. */
function checkHeader(name: string, value: string): string {
  if (/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) return value;
  throw new SourceFailure('invalid_header', `${name} has a value with characters that no header may have`);
}

/** Returns the name as written in the file, with its placeholders. */
function nameOf(url: string): string {
  const path = url.replace(/[?#].*$/s, '').replace(/^https?:\/\/[^/]*/, '');
  return basename(path).slice(0, 200) || 'download';
}

function readUrl(text: string, base?: URL): URL {
  const url = URL.canParse(text, base?.href) ? new URL(text, base) : null;
  if (url === null) throw new SourceFailure('invalid_url', 'the URL, or the one it redirects to, is none');
  if (url.username === '' && url.password === '') return url;
  throw new SourceFailure('invalid_url', 'the URL, or the one it redirects to, holds a user or a password');
}

async function openPage(
  first: URL,
  headers: Headers,
  rules: Rules,
  known: string | null,
  signal: AbortSignal,
): Promise<OpenItem | 'unchanged'> {
  let [url, own] = [first, headers];
  for (let redirects = 0; ; redirects++) {
    checkUrl(url, rules);
    const answer = await request(url, { ...own, ...conditions(known) }, rules, signal);
    const next = await nextUrl(answer, url);
    if (next === null) return takeAnswer(answer, url, known);
    await answer.close();
    if (redirects === MAX_REDIRECTS) {
      throw new SourceFailure(
        'too_many_redirects',
        `${first.host} redirects more than ${MAX_REDIRECTS} times`,
      );
    }
    if (url.protocol === 'https:' && next.protocol !== 'https:') {
      throw new SourceFailure('insecure_redirect', `${url.host} redirects to an unencrypted address`);
    }
    // Headers for one server are never sent to another.
    if (next.origin !== url.origin) own = {};
    url = next;
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

/** Headers by which the server answers 304 where nothing has changed. */
function conditions(known: string | null): Headers {
  if (known === null) return {};
  const { etag, lastModified } = JSON.parse(known) as Version;
  return {
    ...(etag !== null && { 'if-none-match': etag }),
    ...(lastModified !== null && { 'if-modified-since': lastModified }),
  };
}

async function request(url: URL, headers: Headers, rules: Rules, signal: AbortSignal): Promise<HttpAnswer> {
  try {
    return await sendRequest(url, {
      method: 'GET',
      headers: { accept: '*/*', ...headers, 'accept-encoding': 'gzip, identity' },
      allowPrivate: rules.allowPrivate,
      authorities: rules.authorities,
      connectTimeoutMs: SOURCE_CONNECT_MS,
      answerTimeoutMs: SOURCE_CONNECT_MS,
      signal,
    });
  } catch (error) {
    throw signal.aborted ? error : asFailure(error, url);
  }
}

function asFailure(error: unknown, url: URL): SourceFailure {
  if (error instanceof SourceFailure) return error;
  const { code = 'an unknown error', name, message } = error as NodeJS.ErrnoException;
  if (code === forbiddenAddress) {
    const rule = 'allow_private and SCHEDULES_ALLOW_PRIVATE would both have to allow it';
    return new SourceFailure('private_address', `${message}; ${rule}`);
  }
  const isSilent = name === 'TimeoutError';
  const says = isSilent ? 'does not answer' : `cannot be reached: ${code}`;
  return new SourceFailure(isSilent ? 'no_answer' : 'unreachable', `${url.host} ${says}`, {
    passing: true,
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

interface Version {
  readonly etag: string | null;
  readonly lastModified: string | null;
}

async function takeAnswer(
  answer: HttpAnswer,
  url: URL,
  known: string | null,
): Promise<OpenItem | 'unchanged'> {
  const status = answer.status;
  const version = versionOf(answer);
  if (status === 304 || (status === 200 && version !== null && version === known)) {
    await answer.close();
    return 'unchanged';
  }
  if (status !== 200) {
    await answer.close();
    const passing = status >= 500 || status === 408 || status === 425 || status === 429;
    throw new SourceFailure('unexpected_status', `${url.host} answers with status ${status}`, { passing });
  }
  const encoding = (answer.headers['content-encoding'] ?? 'identity').toLowerCase();
  if (encoding !== 'gzip' && encoding !== 'identity') {
    await answer.close();
    throw new SourceFailure(
      'unexpected_encoding',
      `${url.host} answers in an encoding that was not asked for`,
    );
  }
  return {
    bytes: readItem(answer.body, (error) => asFailure(error, url)),
    version,
    hints: { contentType: answer.headers['content-type'], contentEncodingGzip: encoding === 'gzip' },
    close: () => answer.close(),
  };
}

/** Texts from outside are kept if they are short and plain: they are sent back. */
function versionOf({ headers }: HttpAnswer): string | null {
  const plain = (text: string | undefined): string | null =>
    text !== undefined && /^[\x20-\x7e]{1,200}$/.test(text) ? text : null;
  const version: Version = { etag: plain(headers['etag']), lastModified: plain(headers['last-modified']) };
  return version.etag === null && version.lastModified === null ? null : JSON.stringify(version);
}
