import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { readInstant } from '../domain/instant.ts';
import { DEFAULT_PAGE_SIZE, MAX_ID_BYTES, MAX_PAGE_SIZE } from '../domain/limits.ts';
import { ruled, textProblem, worded } from '../validation.ts';

/* What is answered page by page: its parameters, and the cursors that lead to the next page, which are opaque to callers. */

/** How many items are on a page, at most. */
export function limitParameter(maximum: number, description: string) {
  const limit = Type.Integer({ minimum: 1, maximum, default: DEFAULT_PAGE_SIZE, description });
  return Type.Optional(worded(limit, `limit is a whole number from 1 to ${maximum}`));
}

/** A cursor that `read` understands. */
export function cursorParameter(read: (text: string) => unknown, message: string, description: string) {
  const cursor = ruled(Type.String({ description }), (text) => (read(text) === null ? message : null));
  return Type.Optional(worded(cursor, { says: { code: 'invalid_cursor', message } }));
}

const parameters = (
  read: (text: string) => unknown,
  limit = 'Items on a page, at most; of refused records as many as fit into a megabyte.',
) => ({
  limit: limitParameter(MAX_PAGE_SIZE, limit),
  cursor: cursorParameter(
    read,
    'A cursor is taken, unchanged, from the page before',
    'Where the page begins, unchanged from the page before (`Link`).',
  ),
});

/** Of a list of jobs or deliveries: the cursor is the id at which a page ended. */
export const jobPage = parameters(readJobCursor);
/** Of a list of rows: the cursor is the position at which a page ended. */
export const rowPage = parameters(readRowCursor);

const asManyAsFit = 'Items on a page, at most, and as many as fit into a megabyte.';
/** Of a list of profiles: the cursor is the id up to which they have been searched. */
export const keyPage = parameters(readKeyCursor, asManyAsFit);
/** Of a list of events: the cursor is the event at which a page ended. */
export const eventPage = parameters(readEventCursor, asManyAsFit);

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

export function writeJobCursor(jobId: string): string {
  return Buffer.from(jobId).toString('base64url');
}

/** Null for what is no cursor; so do the others. */
export function readJobCursor(cursor: string): string | null {
  const jobId = decode(cursor);
  return uuid.test(jobId) ? jobId : null;
}

export function writeRowCursor(row: number): string {
  return Buffer.from(String(row)).toString('base64url');
}

export function readRowCursor(cursor: string): number | null {
  const row = decode(cursor);
  return /^\d{1,15}$/.test(row) ? Number(row) : null;
}

export function writeKeyCursor(key: string): string {
  return Buffer.from(`id:${key}`).toString('base64url');
}

export function readKeyCursor(cursor: string): string | null {
  const [, key] = /^id:(.+)$/s.exec(Buffer.from(cursor, 'base64url').toString()) ?? [];
  if (key === undefined || textProblem(key, MAX_ID_BYTES) !== null) return null;
  return writeKeyCursor(key) === cursor ? key : null;
}

/** Where an event stands: its instant, and its id. */
interface EventPlace {
  readonly at: string;
  readonly id: string;
}

export function writeEventCursor({ at, id }: EventPlace): string {
  return Buffer.from(`${at} ${id}`).toString('base64url');
}

export function readEventCursor(cursor: string): EventPlace | null {
  const [, at = '', id = ''] = /^(\S+) (.+)$/s.exec(Buffer.from(cursor, 'base64url').toString()) ?? [];
  if (readInstant(at)?.text !== at || textProblem(id, MAX_ID_BYTES) !== null) return null;
  return writeEventCursor({ at, id }) === cursor ? { at, id } : null;
}

function decode(cursor: string): string {
  return Buffer.from(cursor, 'base64url').toString('latin1');
}

/** A name or address and perhaps a port: nothing that could end a header, a path or a URL's authority. */
const plainHost = /^(?:[a-z0-9](?:[a-z0-9._-]{0,252})|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i;

/**
 * Where links point to, without a slash at the end: PUBLIC_URL, else the host the caller asked for, else, if that is
 * not a plain one, the address the request came in at. Who makes X-Forwarded-Proto up changes the links of the own
 * answer, as who makes the host up does.
 */
export function baseUrl(request: FastifyRequest, publicUrl: string | null): string {
  if (publicUrl !== null) return publicUrl;
  const host = request.headers.host;
  if (host !== undefined && plainHost.test(host))
    return `${isForwardedTls(request) ? 'https' : 'http'}://${host.toLowerCase()}`;
  const { localAddress = '127.0.0.1', localPort = 80 } = request.socket;
  return `http://${localAddress.includes(':') ? `[${localAddress}]` : localAddress}:${localPort}`;
}

/** Whether the request reached a proxy in front of us over TLS, as that says. */
export function isForwardedTls({ headers }: FastifyRequest): boolean {
  return headers['x-forwarded-proto'] === 'https';
}

/** The value of a `Link` header that leads to the next page of the same listing. */
export function nextLink(request: FastifyRequest, base: string, cursor: string): string {
  // What follows two slashes would be a host.
  const url = new URL(request.url.replace(/^\/+/, '/'), 'http://host');
  url.searchParams.set('cursor', cursor);
  return `<${base}${url.pathname}${url.search}>; rel="next"`;
}

/** Answers with items that are JSON already: what is parsed and written again may lose digits. */
export function sendEnvelope(
  request: FastifyRequest,
  reply: FastifyReply,
  publicUrl: string | null,
  page: {
    readonly items: readonly string[];
    readonly next: string | null;
    readonly limit: number;
    readonly more?: object;
  },
): FastifyReply {
  const { items, next, limit, more } = page;
  if (next !== null) reply.header('link', nextLink(request, baseUrl(request, publicUrl), next));
  const metadata = { cursor: { after: next, before: null }, limit, ...more };
  return sendJson(reply, `{"data":[${items.join(',')}],"metadata":${JSON.stringify(metadata)}}`);
}

export function sendJson(reply: FastifyReply, json: string): FastifyReply {
  return reply.header('content-type', 'application/json; charset=utf-8').send(json);
}
