import type { FastifyInstance, FastifySchema } from 'fastify';
import { Type } from 'typebox';
import { orNull, withExamples } from '../../api/schema.ts';
import type { System } from '../../context.ts';
import { readCompany, readUser } from '../../ingest/read-record.ts';
import {
  anyValue,
  commitRecord,
  idText,
  ingestAnswers,
  nullableId,
  type RecordRoute,
} from '../record-route.ts';
import { bodyHeaders } from '../request-headers.ts';

const company = Type.Object(
  {
    company_id: Type.Optional(idText('Id of the company.')),
    id: Type.Optional(idText('Another name of `company_id`. If both are given they must be the same.')),
    metadata: Type.Optional(
      Type.Object({}, { additionalProperties: anyValue, description: 'Properties of the company.' }),
    ),
  },
  {
    additionalProperties: anyValue,
    description:
      'The company of the user, which is created if it is new. Other keys are properties of the company. `{}` counts as absent; null takes the user out of the company.',
  },
);

const body = Type.Object(
  {
    user_id: idText('Id of the user.'),
    metadata: Type.Optional(
      Type.Object({}, { additionalProperties: anyValue, description: 'Properties of the user.' }),
    ),
    company: Type.Optional(orNull(company)),
    company_id: Type.Optional(
      nullableId('In place of `company.company_id`; null takes the user out of the company.'),
    ),
  },
  {
    additionalProperties: anyValue,
    description: 'A user. Keys beside the documented ones are properties too.',
  },
);

const identifySchema = {
  operationId: 'identifyUser',
  summary: 'Identify a user',
  description:
    'Stores properties of one user, merged into what is stored, and the company that the user belongs to. Answered when it is committed.',
  tags: ['ingestion'],
  headers: Type.Object(bodyHeaders),
  body: {
    content: {
      'application/json': withExamples(body, {
        user: {
          summary: 'A user with a company',
          value: {
            user_id: 'u1',
            metadata: { name: 'Ada Lovelace', plan: 'pro', logins: 7, trial_ends_at: null },
            company: { company_id: 'acme', name: 'Acme GmbH', size: 120 },
          },
        },
        leaves: {
          summary: 'A user who leaves the company',
          value: { user_id: 'u1', company: null },
        },
      }),
    },
  },
  response: ingestAnswers(),
} satisfies FastifySchema;

/** One user, and the company they belong to. */
export function identify(scope: FastifyInstance, system: System): void {
  const route: RecordRoute<ReturnType<typeof readUser>> = {
    name: 'identify',
    entity: 'users',
    read: readUser,
    commit: (record, idempotency) => system.ingest.identifyUser(record, idempotency),
  };
  scope.post('/v1/identify', { config: { scope: 'ingest' }, schema: identifySchema }, (request, reply) =>
    commitRecord(system, route, request, reply),
  );
}

const companyBody = Type.Object(
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
      'application/json': withExamples(companyBody, {
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
