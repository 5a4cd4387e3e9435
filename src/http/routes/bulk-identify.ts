import type { FastifyInstance, FastifySchema } from 'fastify';
import { Type } from 'typebox';
import { jobRecord } from '../../api/job.ts';
import type { System } from '../../context.ts';
import type { Entity } from '../../domain/entity.ts';
import { renderLoad } from '../../load/render-load.ts';
import { baseUrl } from '../page.ts';
import { optionFields } from '../plugins/validation.ts';
import { bodyHeaders } from '../request-headers.ts';
import type { JobRecord } from '../schemas/job-record.ts';
import { companiesBody, formBody, uploadAnswers, usersBody } from '../upload/bodies.ts';
import { optionsReader, uploadOptions } from '../upload/options.ts';
import { receiveUpload } from '../upload/receive-upload.ts';
import type { UploadKind } from '../upload/upload.ts';

const bulkIdentifySchema = {
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
    querystring: optionFields(uploadOptions([entity])),
    body: { content: { 'application/json': body, 'multipart/form-data': formBody([entity], exampleFile) } },
    response: uploadAnswers(202, jobRecord.ref),
  };
}

/** `{"users":[…]}` or `{"companies":[…]}` of any length, or a file of one of them in a form. */
export function bulkIdentify(app: FastifyInstance, system: System, entity: Entity): void {
  const type = `bulk_identify_${entity}` as const;
  const kind: UploadKind = {
    entity,
    readOptions: optionsReader([entity]),
    mediaTypes: ['application/json'],
    otherMediaTypes: [],
    defaultFilename: `${type}.json`,
  };
  const options = { config: { scope: 'import' }, schema: bulkIdentifySchema[entity] } as const;
  app.post(`/v1/${entity}/bulk_identify`, options, async (request, reply) => {
    const load = await receiveUpload(system, request, type, kind);
    return reply
      .code(202)
      .send(renderLoad(load, baseUrl(request, system.config.publicUrl)) satisfies JobRecord);
  });
}
