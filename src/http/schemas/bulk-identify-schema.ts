import type { FastifySchema } from 'fastify';
import { Type } from 'typebox';
import type { Entity } from '../../domain/entity.ts';
import { jobRecord } from './job-record.ts';
import { bodyHeaders } from './request-headers.ts';
import { uploadAnswers } from './upload-answers.ts';
import { companiesBody, formBody, usersBody } from './upload-body.ts';
import { uploadOptions } from './upload-options.ts';

export const bulkIdentifySchema = {
  users: describe('users', 'bulkIdentifyUsers', usersBody, 'user_id,name\nu1,Ada Lovelace\n'),
  companies: describe(
    'companies',
    'bulkIdentifyCompanies',
    companiesBody,
    'company_id,name\nacme,Acme GmbH\n',
  ),
} satisfies Record<Entity, FastifySchema>;

function describe(entity: Entity, operationId: string, body: object, exampleFile: string): FastifySchema {
  return {
    operationId,
    summary: `Identify ${entity} in bulk`,
    description: `Starts a job that loads an array of ${entity} of any length, or a file of them in a form. Items that are refused do not fail the job; it reports them.`,
    tags: ['loads'],
    headers: Type.Object(bodyHeaders),
    querystring: Type.Object(uploadOptions([entity])),
    body: { content: { 'application/json': body, 'multipart/form-data': formBody([entity], exampleFile) } },
    response: uploadAnswers(202, jobRecord.ref),
  };
}
