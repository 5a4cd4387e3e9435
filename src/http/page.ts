import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { readInstant } from '../domain/instant.ts';
import { DEFAULT_PAGE_SIZE, MAX_ID_BYTES, MAX_PAGE_BYTES, MAX_PAGE_SIZE } from '../domain/limits.ts';
import { ruled, textProblem, worded } from '../validation.ts';

/* Lists are answered page by page. Their cursors lead to the next page, and are opaque to callers. */

export function limitParameter(maximum: number, description: string) {
  const limit = Type.Integer({ minimum: 1, maximum, default: DEFAULT_PAGE_SIZE, description });
  return Type.Optional(worded(limit, `limit is a whole number from 1 to ${maximum}`));
}

export function cursorParameter(read: (text: string) => unknown, message: string, description: string) {
  const cursor = ruled(Type.String({ description }), (text) => (read(text) === null ? message : null));
  return Type.Optional(worded(cursor, { says: { code: 'invalid_cursor', message } }));
}

const parameters = (read: (text: string) => unknown, limit: string) => ({
  limit: limitParameter(MAX_PAGE_SIZE, limit),
  cursor: cursorParameter(
    read,
    'A cursor is taken, unchanged, from the page before',
    'Cursor from the previous page (`Link`), unchanged.',
  ),
});

const mostItems = 'Maximum number of items on a page.';
const asManyAsFit = 'Maximum number of items on a page. A page also ends at one megabyte.';

export const jobPage = parameters(readJobCursor, mostItems);
export const rowPage = parameters(readRowCursor, asManyAsFit);
export const keyPage = parameters(readKeyCursor, asManyAsFit);
export const eventPage = parameters(readEventCursor, asManyAsFit);

/** The memory that a page may take until its caller has read it. */
export const pageBytes = { answerBytes: MAX_PAGE_BYTES } as const;

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

const encode = (text: string): string => Buffer.from(text).toString('base64url');
const decode = (cursor: string): string => Buffer.from(cursor, 'base64url').toString('utf8');

export const writeJobCursor = encode;

/** Returns `null` for a text that is no cursor, as the other readers do. */
export function readJobCursor(cursor: string): string | null {
  const jobId = decode(cursor);
  return uuid.test(jobId) ? jobId : null;
}

export function writeRowCursor(row: number): string {
  return encode(String(row));
}

export function readRowCursor(cursor: string): number | null {
  const row = decode(cursor);
  return /^\d{1,15}$/.test(row) ? Number(row) : null;
}

export function writeKeyCursor(key: string): string {
  return encode(`id:${key}`);
}

export function readKeyCursor(cursor: string): string | null {
  const [, key] = /^id:(.+)$/s.exec(decode(cursor)) ?? [];
  if (key === undefined || textProblem(key, MAX_ID_BYTES) !== null) return null;
  return writeKeyCursor(key) === cursor ? key : null;
}

interface EventPlace {
  readonly at: string;
  readonly id: string;
}

export function writeEventCursor({ at, id }: EventPlace): string {
  return encode(`${at} ${id}`);
}

export function readEventCursor(cursor: string): EventPlace | null {
  const [, at = '', id = ''] = /^(\S+) (.+)$/s.exec(decode(cursor)) ?? [];
  if (readInstant(at)?.text !== at || textProblem(id, MAX_ID_BYTES) !== null) return null;
  return writeEventCursor({ at, id }) === cursor ? { at, id } : null;
}

/** A name or address and perhaps a port: nothing that could end a header, a path or a URL's authority. */
const plainHost = /^(?:[a-z0-9](?:[a-z0-9._-]{0,252})|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i;

/**
 * Returns where links point to, without a slash at the end: PUBLIC_URL, else the host that the caller asked for, else, if that is not
 * a plain one, the address that the request came in at. A caller who forges X-Forwarded-Proto or the host changes only the links of
 * its own answer.
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

interface PageCall {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  base(): string;
}

/** Sets the `Link` header that leads to the next page of the same list, if there is one. */
export function linkNext({ request, reply, base }: PageCall, cursor: string | null): void {
  if (cursor === null) return;
  // The text after two slashes would be taken for a host.
  const url = new URL(request.url.replace(/^\/+/, '/'), 'http://host');
  url.searchParams.set('cursor', cursor);
  reply.header('link', `<${base()}${url.pathname}${url.search}>; rel="next"`);
}

interface Page {
  /** Items as JSON: parsing and writing them again could lose digits. */
  readonly items: readonly string[];
  readonly next: string | null;
  readonly limit: number;
  readonly more?: object;
}

export function sendEnvelope(call: PageCall, { items, next, limit, more }: Page): FastifyReply {
  linkNext(call, next);
  const metadata = { cursor: { after: next, before: null }, limit, ...more };
  return sendJson(call.reply, `{"data":[${items.join(',')}],"metadata":${JSON.stringify(metadata)}}`);
}

export function sendJson(reply: FastifyReply, json: string): FastifyReply {
  return reply.header('content-type', 'application/json; charset=utf-8').send(json);
}
