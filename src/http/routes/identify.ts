import type { FastifyInstance } from 'fastify';
import type { System } from '../../context.ts';
import { readUser } from '../../ingest/read-user.ts';
import { readIdempotency } from '../idempotency.ts';
import { environmentId } from '../plugins/auth.ts';
import { recordBody } from '../record-body.ts';
import { identifySchema } from '../schemas/identify-schema.ts';

/** One user, and the company they belong to. 202, without a body, means committed. */
export function identify(scope: FastifyInstance, { ingest }: System): void {
  scope.post(
    '/v1/identify',
    { config: { scope: 'ingest' }, schema: identifySchema },
    async (request, reply) => {
      const body = recordBody(request);
      const record = readUser(body, environmentId(request));
      await ingest.identifyUser(record, readIdempotency(request, body));
      return reply.code(202).send();
    },
  );
}
