import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { inputError } from '../base/errors.ts';
import { readInstant } from '../base/instant.ts';
import {
  DEFAULT_PAGE_SIZE,
  MAX_ID_BYTES,
  MAX_INTEGER,
  MAX_PAGE_BYTES,
  MAX_PAGE_SIZE,
} from '../base/limits.ts';
import { isUuid, optional, ruled, textProblem } from '../base/validation.ts';
import { text } from './schema.ts';

const MAX_PAGE_OFFSET = 100_000;

export function limitParameter(maximum: number, description: string) {
  const limit = Type.Integer({ minimum: 1, maximum, default: DEFAULT_PAGE_SIZE, description });
  return optional(limit, `limit is a whole number from 1 to ${maximum}`);
}

export interface CursorKind<T> {
  readonly write: (place: T) => string;
  readonly read: (cursor: string) => T | null;
}

/** A cursor is a place in a list, as text in Base64. */
function cursorKind<T>(text: (place: T) => string, parse: (text: string) => T | null): CursorKind<T> {
  const write = (place: T) => Buffer.from(text(place)).toString('base64url');
  return {
    write,
    read(cursor) {
      const place = parse(Buffer.from(cursor, 'base64url').toString('utf8'));
      return place !== null && write(place) === cursor ? place : null;
    },
  };
}

const isId = (text: string): boolean => textProblem(text, MAX_ID_BYTES) === null;

export const jobCursor = cursorKind<string>(
  (id) => id,
  (text) => (isUuid(text) ? text.toLowerCase() : null),
);
export const rowCursor = cursorKind<number>(String, (text) =>
  /^\d{1,15}$/.test(text) ? Number(text) : null,
);
export const keyCursor = cursorKind<string>(
  (key) => `id:${key}`,
  (text) => (text.startsWith('id:') && isId(text.slice(3)) ? text.slice(3) : null),
);
export const propertyCursor = cursorKind<string>(
  (key) => `property:${key}`,
  (text) => (text.startsWith('property:') && !text.includes('\0') ? text.slice('property:'.length) : null),
);
export const eventCursor = cursorKind<{ readonly at: string; readonly id: string }>(
  ({ at, id }) => `${at} ${id}`,
  (text) => {
    // If the id is empty, the page has only events before the instant.
    const [, at = '', id = ''] = /^(\S+) (.*)$/s.exec(text) ?? [];
    return readInstant(at)?.text === at && (id === '' || isId(id)) ? { at, id } : null;
  },
);
export const segmentCursor = cursorKind<number>(
  (id) => `segment:${id}`,
  (text) => {
    const [, digits] = /^segment:(\d{1,10})$/.exec(text) ?? [];
    return digits !== undefined && Number(digits) <= MAX_INTEGER ? Number(digits) : null;
  },
);

export function cursorParameter(
  kind: Pick<CursorKind<unknown>, 'read'>,
  message: string,
  description: string,
) {
  const cursor = ruled(text(description), (text) => (kind.read(text) === null ? message : null));
  return optional(cursor, { wording: { code: 'invalid_cursor', message } });
}

const parameters = (kind: Pick<CursorKind<unknown>, 'read'>, limit: string) => ({
  limit: limitParameter(MAX_PAGE_SIZE, limit),
  cursor: cursorParameter(
    kind,
    'A cursor is taken, unchanged, from the page before',
    'Cursor from the previous page (`Link`), unchanged.',
  ),
});

const mostItems = 'Maximum number of items on a page.';
const pageLimitDescription = 'Maximum number of items on a page. A page also ends at one megabyte.';

/**
 * Only lists whose pages never end early may have this parameter. After a page that ended early,
 * the next offset would skip items.
 */
export const offsetParameter = optional(
  Type.Integer({
    minimum: 0,
    maximum: MAX_PAGE_OFFSET,
    description:
      'Number of items before the page, for callers that cannot follow cursors. Not with a cursor.',
  }),
  `offset is a whole number from 0 to ${MAX_PAGE_OFFSET}; further pages need a cursor`,
);
export const jobPage = { ...parameters(jobCursor, mostItems), offset: offsetParameter };
export const rowPage = parameters(rowCursor, pageLimitDescription);
export const keyPage = parameters(keyCursor, pageLimitDescription);
export const eventPage = parameters(eventCursor, pageLimitDescription);

export const pageBytes = { answerBytes: MAX_PAGE_BYTES } as const;

/**
 * A host, with or without a port. Allows no character that would end a header, a path or the host
 * part of a URL.
 */
const plainHost = /^(?:[a-z0-9](?:[a-z0-9._-]{0,252})|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i;

/**
 * Without PUBLIC_URL, a client that forges its Host header only changes the links in its own
 * response.
 */
export function baseUrl(request: FastifyRequest, publicUrl: string | null): string {
  if (publicUrl !== null) return publicUrl;
  const host = request.headers.host;
  if (host !== undefined && plainHost.test(host))
    return `${isForwardedTls(request) ? 'https' : 'http'}://${host.toLowerCase()}`;
  const { localAddress = '127.0.0.1', localPort = 80 } = request.socket;
  return `http://${localAddress.includes(':') ? `[${localAddress}]` : localAddress}:${localPort}`;
}

export function isForwardedTls({ headers }: FastifyRequest): boolean {
  return headers['x-forwarded-proto'] === 'https';
}

interface PageQuery {
  readonly limit?: number;
  readonly cursor?: string;
  readonly offset?: number;
}

/** @throws InputError `invalid_field` if both a cursor and an offset are set */
export function askedPage<T>(query: PageQuery, kind: CursorKind<T>) {
  const { limit = DEFAULT_PAGE_SIZE, cursor = '', offset = 0 } = query;
  if (cursor !== '' && offset > 0)
    throw inputError('invalid_field', 'Send either cursor or offset', 'offset');
  return { limit, after: kind.read(cursor), offset };
}

interface PageCall {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly query: PageQuery;
  base(): string;
}

function linkNext({ request, reply, base }: PageCall, cursor: string | null): void {
  if (cursor === null) return;
  // A path that begins with two slashes would be interpreted as a host.
  const url = new URL(request.url.replace(/^\/+/, '/'), 'http://host');
  url.searchParams.delete('offset');
  url.searchParams.set('cursor', cursor);
  reply.header('link', `<${base()}${url.pathname}${url.search}>; rel="next"`);
}

export function linkJobs(
  call: PageCall,
  page: { readonly total: number; readonly next: string | null },
): void {
  call.reply.header('x-total-count', String(page.total));
  linkNext(call, page.next === null ? null : jobCursor.write(page.next));
}

/** Items that are JSON text are sent unchanged, because parsing them could lose digits. */
export function sendEnvelope(
  call: PageCall,
  items: readonly (object | { readonly json: string })[],
  next: string | null,
  more: object = {},
): FastifyReply {
  linkNext(call, next);
  const { limit = DEFAULT_PAGE_SIZE } = call.query;
  const metadata = { cursor: { after: next, before: null }, limit, ...more };
  const data = items.map((item) => ('json' in item ? item.json : JSON.stringify(item)));
  return sendJson(call.reply, `{"data":[${data.join(',')}],"metadata":${JSON.stringify(metadata)}}`);
}

export function sendJson(reply: FastifyReply, json: string): FastifyReply {
  return reply.header('content-type', 'application/json; charset=utf-8').send(json);
}
