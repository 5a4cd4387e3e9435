import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { inputError } from '../domain/errors.ts';
import type { Idempotency } from '../ingest/records.ts';
import { worded } from '../validation.ts';

function idempotencyKey(what: string) {
  const key = Type.String({
    pattern: '^[\\x20-\\x7e]{1,255}$',
    description: `Makes the request safe to repeat. For 24 hours, the same key with the same ${what} returns the first answer again and changes nothing; with another ${what} it is refused with \`idempotency_conflict\`.`,
    examples: ['2026-11-20/nightly'],
  });
  return Type.Optional(
    worded(key, {
      says: {
        message: 'An Idempotency-Key has 1 to 255 printable ASCII characters',
        details: 'Idempotency-Key',
      },
    }),
  );
}

export const actionHeaders = { 'Idempotency-Key': idempotencyKey('request') };

export const conditionHeaders = {
  'If-None-Match': Type.Optional(
    Type.String({
      description:
        'ETag of the version that the caller has. If it is still current, the answer is 304 without a body.',
    }),
  ),
};

/** Headers of requests that bring a body. How it is packed is looked at where it is read. */
export const bodyHeaders = {
  'Idempotency-Key': idempotencyKey('body'),
  'Content-Encoding': Type.Optional(
    Type.Enum(['gzip', 'x-gzip', 'identity'], { type: 'string', description: 'Encoding of the body.' }),
  ),
};

const jsonTypes = /^(?:|(?:application|text)\/(?:x-)?json|[\w.-]+\/[\w.+-]+\+json)$/;
/** Media types of clients that set none: `curl -d`, `fetch` with a text, browsers that send as they leave. */
const unsaidTypes: ReadonlySet<string> = new Set([
  'application/x-www-form-urlencoded',
  'application/octet-stream',
  'text/plain',
]);

export function mediaTypeOf(contentType: string | undefined): string {
  return (contentType ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

/** Tells whether a media type, as `mediaTypeOf` returns it, means JSON. An empty one does too. */
export function meansJson(mediaType: string): boolean {
  return jsonTypes.test(mediaType);
}

/** Tells whether the client that sent this media type set none itself. It then says nothing about the body. */
export function isUnsaid(mediaType: string): boolean {
  return unsaidTypes.has(mediaType);
}

export function readEncoding(header: string | undefined): boolean {
  const encoding = header?.trim().toLowerCase() ?? '';
  if (encoding === 'gzip' || encoding === 'x-gzip') return true;
  if (encoding === '' || encoding === 'identity') return false;
  throw inputError(
    'unsupported_media_type',
    'Send the body as it is, or gzip',
    `Content-Encoding: ${encoding}`,
  );
}

export function idempotencyKeyOf({ headers }: FastifyRequest): string | null {
  return (headers['idempotency-key'] as string | undefined) ?? null;
}

/** Returns the Idempotency-Key with a digest of this body at this route, or `null` without the header. */
export function readIdempotency(request: FastifyRequest, body: Buffer): Idempotency | null {
  const key = idempotencyKeyOf(request);
  if (key === null) return null;
  const digest = createHash('sha256').update(`${request.routeOptions.url}\n`).update(body).digest();
  return { key, digest };
}

/** Tells whether an `If-None-Match` header names this version, which the caller then has already. */
export function namesTag(header: string | undefined, etag: string): boolean {
  const tags = (header ?? '').split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  return tags.includes(etag) || tags.includes('*');
}
