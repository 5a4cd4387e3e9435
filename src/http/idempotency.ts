import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { Idempotency } from '../ingest/ingest.ts';
import { readIdempotencyKey } from './schemas/upload-headers.ts';

/** The request's Idempotency-Key with what it stands for: this body at this route. Null without the header. */
export function readIdempotency(request: FastifyRequest, body: Buffer): Idempotency | null {
  const key = readIdempotencyKey(request.headers['idempotency-key']);
  if (key === null) return null;
  const digest = createHash('sha256').update(`${request.routeOptions.url}\n`).update(body).digest();
  return { key, digest };
}
