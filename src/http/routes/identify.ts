import type { FastifyInstance } from 'fastify';
import type { System } from '../../context.ts';
import { readUser } from '../../ingest/read-record.ts';
import { identifySchema } from '../schemas/identify-schema.ts';
import { type RecordRoute, takeRecord } from '../take-record.ts';

/** One user, and the company they belong to. */
export function identify(scope: FastifyInstance, { ingest, metrics }: System): void {
  const route: RecordRoute<ReturnType<typeof readUser>> = {
    entity: 'users',
    read: readUser,
    commit: (record, idempotency) => ingest.identifyUser(record, idempotency),
  };
  scope.post('/v1/identify', { config: { scope: 'ingest' }, schema: identifySchema }, (request, reply) =>
    takeRecord(metrics, route, request, reply),
  );
}
