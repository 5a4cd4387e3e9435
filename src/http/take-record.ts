import type { FastifyReply, FastifyRequest } from 'fastify';
import { InputError } from '../domain/errors.ts';
import type { Idempotency } from '../ingest/ingest.ts';
import type { IngestEntity } from '../ingest/records.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { readIdempotency } from './idempotency.ts';
import { environmentId } from './plugins/auth.ts';
import { recordBody } from './record-body.ts';

/** How the records of one entity are read and committed. */
export interface RecordRoute<T> {
  readonly entity: IngestEntity;
  readonly read: (body: Buffer, environmentId: number) => T;
  readonly commit: (record: T, idempotency: Idempotency | null) => Promise<void>;
}

/** Takes a single record in: 202, without a body, when it is committed. */
export async function takeRecord<T>(
  metrics: Metrics,
  { entity, read, commit }: RecordRoute<T>,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  try {
    const body = recordBody(request);
    await commit(read(body, environmentId(request)), readIdempotency(request, body));
  } catch (error) {
    metrics.recordsEnded(entity, error instanceof InputError ? 'refused' : 'failed', 1);
    throw error;
  }
  metrics.recordsEnded(entity, 'accepted', 1);
  return reply.code(202).send();
}
