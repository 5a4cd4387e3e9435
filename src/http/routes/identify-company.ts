import type { FastifyInstance } from 'fastify';
import type { System } from '../../context.ts';
import { readCompany } from '../../ingest/read-company.ts';
import { readIdempotency } from '../idempotency.ts';
import { environmentId } from '../plugins/auth.ts';
import { recordBody } from '../record-body.ts';
import { identifyCompanySchema } from '../schemas/identify-company-schema.ts';

/** One company. 202, without a body, means committed. */
export function identifyCompany(scope: FastifyInstance, { ingest }: System): void {
  scope.post(
    '/v1/companies/identify',
    { config: { scope: 'ingest' }, schema: identifyCompanySchema },
    async (request, reply) => {
      const body = recordBody(request);
      const record = readCompany(body, environmentId(request));
      await ingest.identifyCompany(record, readIdempotency(request, body));
      return reply.code(202).send();
    },
  );
}
