import type { FastifyInstance } from 'fastify';
import type { System } from '../../context.ts';
import { readEvent } from '../../ingest/read-record.ts';
import { trackSchema } from '../schemas/track-schema.ts';
import { type RecordRoute, takeRecord } from '../take-record.ts';

/** One event. */
export function track(scope: FastifyInstance, { ingest, metrics }: System): void {
  const route: RecordRoute<ReturnType<typeof readEvent>> = {
    entity: 'events',
    read: readEvent,
    commit: (record, idempotency) => ingest.track(record, idempotency),
  };
  scope.post('/v1/track', { config: { scope: 'ingest' }, schema: trackSchema }, (request, reply) =>
    takeRecord(metrics, route, request, reply),
  );
}
