import type { FastifyInstance } from 'fastify';
import type { System } from '../../context.ts';
import { readEvent } from '../../ingest/read-event.ts';
import { readIdempotency } from '../idempotency.ts';
import { environmentId } from '../plugins/auth.ts';
import { recordBody } from '../record-body.ts';
import { trackSchema } from '../schemas/track-schema.ts';

/** One event. 202, without a body, means committed. */
export function track(scope: FastifyInstance, { ingest }: System): void {
  scope.post('/v1/track', { config: { scope: 'ingest' }, schema: trackSchema }, async (request, reply) => {
    const body = recordBody(request);
    const record = readEvent(body, environmentId(request));
    await ingest.track(record, readIdempotency(request, body));
    return reply.code(202).send();
  });
}
