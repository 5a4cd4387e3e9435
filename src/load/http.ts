import { type TSchema, Type } from 'typebox';
import { type Entity, entities } from '../domain/entity.ts';
import type { OptionTable } from '../domain/option-table.ts';
import { jobRecord } from '../http/job.ts';
import { bodyHeaders, jobParameters } from '../http/parameters.ts';
import { optionFields } from '../http/plugins/validation.ts';
import { render, renderJob } from '../http/render.ts';
import { type Route, route } from '../http/route.ts';
import { text } from '../http/schema.ts';
import { importRecord, uploadOfLoad } from './api.ts';
import { keepFileOfLoad } from './retry.ts';
import { importOptions, optionsReader, uploadOptions } from './upload/options.ts';
import { receiveUpload } from './upload/receive-upload.ts';
import {
  anyBody,
  archiveBody,
  columnarBody,
  companiesBody,
  csvBody,
  formBody,
  ndjsonBody,
  packedBody,
  tsvBody,
  type UploadKind,
  usersBody,
  workbookBody,
} from './upload/upload.ts';

const rawBodies: Readonly<Record<string, { readonly schema: TSchema }>> = {
  'text/csv': csvBody,
  'text/tab-separated-values': tsvBody,
  'application/x-ndjson': ndjsonBody,
  'application/ndjson': ndjsonBody,
  'application/jsonl': ndjsonBody,
  'application/x-jsonlines': ndjsonBody,
  'application/gzip': packedBody,
  'application/x-gzip': packedBody,
  'application/vnd.apache.parquet': columnarBody,
  'application/x-parquet': columnarBody,
  'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet': workbookBody,
  'application/zip': archiveBody,
  'application/octet-stream': anyBody,
};

const importEntities = ['users', 'companies', 'auto'] as const;

export const importKind = (table: OptionTable): UploadKind => ({
  entity: null,
  readOptions: optionsReader(table, importEntities, true),
  mediaTypes: [...Object.keys(rawBodies), 'application/json'],
  // Media types that spreadsheet programs and other programs use for the same formats.
  otherMediaTypes: [
    'application/csv',
    'text/x-csv',
    'application/x-csv',
    'text/comma-separated-values',
    'application/vnd.ms-excel',
    'application/vnd.ms-excel.sheet.macroenabled.12',
    'application/x-zip-compressed',
    'application/x-zip',
    'application/jsonlines',
    'application/x-jsonl',
    'text/x-ndjson',
  ],
  defaultFilename: 'upload',
  takesUpload: true,
});

export const takesFile = (table: OptionTable) =>
  ({
    access: 'import',
    bodyKind: 'form',
    headers: {
      ...bodyHeaders,
      'Content-Disposition': Type.Optional(
        text('Name of a file that is the body itself.', 'attachment; filename="users.csv"'),
      ),
    },
    query: optionFields({ ...uploadOptions(table, importEntities), ...importOptions }),
    // JSON is accepted too, but not documented. Otherwise, code generators would derive the type of
    // the call from JSON, and the call could not send a file.
    content: { 'multipart/form-data': formBody(table, importEntities), ...rawBodies },
  }) as const;

const uploadRefusals = [
  'empty_file',
  'unrecognised_columns',
  'unsupported_format',
  'duplicate_file',
] as const;

const isAccepted = 'The file was received completely and is stored; the job that loads it is queued.';

function createImport(table: OptionTable): Route {
  const kind = importKind(table);
  return route({
    ...takesFile(table),
    at: 'POST /v1/imports',
    operationId: 'createImport',
    summary: 'Import a file',
    description:
      'Starts a job that loads a file of users or companies, of any size: in a form, or as the body itself. A body without a `Content-Type` is accepted, and so is a JSON array, or `{"users":[…]}`, as `application/json`. Refused records do not fail the job; the job reports them.',
    answer: { description: isAccepted, schema: importRecord.ref },
    refuses: [...uploadRefusals, 'not_found'],
    handle: async ({ system, request, base }) => {
      const job = renderJob(await receiveUpload(system, request, 'import', kind), base());
      // Unlike all other routes, this one returns `file_size` and `total_rows` as strings.
      return { ...job, file_size: String(job.file_size), total_rows: String(job.total_rows) };
    },
  });
}

const bulk = {
  users: { operationId: 'bulkIdentifyUsers', body: usersBody, example: 'user_id,name\nu1,Ada Lovelace\n' },
  companies: {
    operationId: 'bulkIdentifyCompanies',
    body: companiesBody,
    example: 'company_id,name\nacme,Acme GmbH\n',
  },
} as const satisfies Record<Entity, object>;

function bulkIdentify(table: OptionTable, entity: Entity): Route {
  const { operationId, body, example } = bulk[entity];
  const type = `bulk_identify_${entity}` as const;
  const kind: UploadKind = {
    entity,
    readOptions: optionsReader(table, [entity]),
    mediaTypes: ['application/json'],
    otherMediaTypes: [],
    defaultFilename: `${type}.json`,
    takesUpload: false,
  };
  return route({
    at: `POST /v1/${entity}/bulk_identify`,
    operationId,
    summary: `Identify ${entity} in bulk`,
    description: `Starts a job that loads an array of ${entity} of any length, or a file of them in a form. Refused items do not fail the job; the job reports them.`,
    access: 'import',
    bodyKind: 'form',
    headers: bodyHeaders,
    query: optionFields(uploadOptions(table, [entity])),
    content: { 'application/json': body, 'multipart/form-data': formBody(table, [entity], example) },
    answer: { status: 202, description: isAccepted, schema: jobRecord.ref },
    refuses: uploadRefusals,
    handle: async ({ system, request, base }) =>
      renderJob(await receiveUpload(system, request, type, kind), base()),
  });
}

const ofLoad = route({
  at: 'POST /v1/background_jobs/:job_id/upload',
  operationId: 'loadAgain',
  summary: 'Create an upload from the file of a load',
  description:
    'Creates an upload from the stored file of a load, to inspect and load it with other options, such as another `map`. Nothing is sent or copied. The upload expires after a day, or with the stored file.',
  access: 'import',
  params: jobParameters,
  answer: { status: 201, description: 'The upload, and how the job read it.', schema: uploadOfLoad.ref },
  refuses: ['job_expired', 'job_not_retryable'],
  handle: async ({ system, params, environment }) => {
    const { upload, options } = await keepFileOfLoad(system, environment, params.job_id);
    const { isGzip: _, ref: __, ...shown } = upload;
    return { ...render(shown), options };
  },
});

export function importRoutes(table: OptionTable): readonly Route[] {
  return [createImport(table), ...entities.map((entity) => bulkIdentify(table, entity)), ofLoad];
}
