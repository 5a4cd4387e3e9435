import type { FastifySchema } from 'fastify';
import { Type } from 'typebox';
import { ingestAnswers } from './ingest-answers.ts';
import { anyValue, idText } from './record-fields.ts';
import { bodyHeaders } from './request-headers.ts';
import { withExamples } from './with-examples.ts';

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

export const identifyCompanySchema = {
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
