import type { FastifyInstance, FastifySchema } from 'fastify';
import { Type } from 'typebox';
import { withExamples } from '../../api/schema.ts';
import type { System } from '../../context.ts';
import { readCompany } from '../../ingest/read-record.ts';
import { anyValue, commitRecord, idText, ingestAnswers, type RecordRoute } from '../record-route.ts';
import { bodyHeaders } from '../request-headers.ts';

const body = Type.Object(
  {
    company_id: idText('Id of the company.'),
    metadata: Type.Optional(
      Type.Object({}, { additionalProperties: anyValue, description: 'Properties of the company.' }),
    ),
  },
  {
    additionalProperties: anyValue,
    description: 'A company. Keys beside the documented ones are properties too.',
  },
);

const identifyCompanySchema = {
  operationId: 'identifyCompany',
  summary: 'Identify a company',
  description: 'Stores properties of one company, merged into what is stored. Answered when it is committed.',
  tags: ['ingestion'],
  headers: Type.Object(bodyHeaders),
  body: {
    content: {
      'application/json': withExamples(body, {
        company: {
          summary: 'A company',
          value: {
            company_id: 'acme',
            metadata: { name: 'Acme GmbH', size: 120, industry: 'Tools', old_name: null },
          },
        },
      }),
    },
  },
  response: ingestAnswers(),
} satisfies FastifySchema;

/** One company. */
export function identifyCompany(scope: FastifyInstance, system: System): void {
  const route: RecordRoute<ReturnType<typeof readCompany>> = {
    name: 'company',
    entity: 'companies',
    read: readCompany,
    commit: (record, idempotency) => system.ingest.identifyCompany(record, idempotency),
  };
  scope.post(
    '/v1/companies/identify',
    { config: { scope: 'ingest' }, schema: identifyCompanySchema },
    (request, reply) => commitRecord(system, route, request, reply),
  );
}
