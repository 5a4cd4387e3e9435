import type { FastifyInstance } from 'fastify';
import type { System } from '../../context.ts';
import { readCompany } from '../../ingest/read-record.ts';
import { identifyCompanySchema } from '../schemas/identify-company-schema.ts';
import { type RecordRoute, takeRecord } from '../take-record.ts';

/** One company. */
export function identifyCompany(scope: FastifyInstance, { ingest, metrics }: System): void {
  const route: RecordRoute<ReturnType<typeof readCompany>> = {
    entity: 'companies',
    read: readCompany,
    commit: (record, idempotency) => ingest.identifyCompany(record, idempotency),
  };
  scope.post(
    '/v1/companies/identify',
    { config: { scope: 'ingest' }, schema: identifyCompanySchema },
    (request, reply) => takeRecord(metrics, route, request, reply),
  );
}
