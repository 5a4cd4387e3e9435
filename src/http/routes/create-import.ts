import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { importRecord } from '../../api/load.ts';
import type { System } from '../../context.ts';
import { renderLoad } from '../../load/render-load.ts';
import { baseUrl } from '../page.ts';
import { optionFields } from '../plugins/validation.ts';
import { bodyHeaders } from '../request-headers.ts';
import {
  anyBody,
  archiveBody,
  columnarBody,
  csvBody,
  formBody,
  ndjsonBody,
  packedBody,
  tsvBody,
  uploadAnswers,
  workbookBody,
} from '../upload/bodies.ts';
import { importOptions, optionsReader, uploadOptions } from '../upload/options.ts';
import { receiveUpload } from '../upload/receive-upload.ts';
import { storeKept, type UploadKind } from '../upload/upload.ts';

/** Media types of a body that is the file of an import itself. */
const importMediaTypes = {
  csv: ['text/csv', 'text/tab-separated-values'],
  ndjson: ['application/x-ndjson', 'application/ndjson', 'application/jsonl', 'application/x-jsonlines'],
  json: ['application/json'],
  packed: ['application/gzip', 'application/x-gzip'],
  columnar: [
    'application/vnd.apache.parquet',
    'application/x-parquet',
    'application/avro',
    'application/vnd.apache.avro',
  ],
  workbook: ['application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'],
  archive: ['application/zip'],
  /** The content tells. */
  any: ['application/octet-stream'],
} as const;

type ImportRecord = Static<typeof importRecord.schema>;

const entities = ['users', 'companies', 'auto'] as const;

const bodies = {
  csv: csvBody,
  ndjson: ndjsonBody,
  packed: packedBody,
  columnar: columnarBody,
  workbook: workbookBody,
  archive: archiveBody,
  any: anyBody,
};

/**
 * JSON is taken too, and left out here: generators make the type of a call from `application/json` wherever it is among the types
 * of a body, and have no call then that sends a file.
 */
const rawBodies = Object.entries(bodies).flatMap(([kind, body]) =>
  importMediaTypes[kind as keyof typeof bodies].map((mediaType) => [mediaType, body] as const),
);

/** Of an import, and of an inspection. */
export const importHeaders = Type.Object({
  ...bodyHeaders,
  'Content-Disposition': Type.Optional(
    Type.String({
      description: 'Names a file that is the body itself.',
      examples: ['attachment; filename="users.csv"'],
    }),
  ),
});

export const importParameters = optionFields({ ...uploadOptions(entities), ...importOptions });

export const importBody = {
  content: {
    'multipart/form-data': formBody(entities),
    ...Object.fromEntries(rawBodies),
    'text/tab-separated-values': tsvBody,
  },
};

const createImportSchema = {
  operationId: 'createImport',
  summary: 'Import a file',
  description:
    'Starts a job that loads a file of users or companies, of any size: in a form, or as the body itself. A body without a `Content-Type` is taken too, and so is a JSON array, or `{"users":[…]}`, as `application/json`. Records that are refused do not fail the job; it reports them.',
  tags: ['loads'],
  headers: importHeaders,
  querystring: importParameters,
  body: importBody,
  response: uploadAnswers(200, importRecord.ref, 'not_found', 'upload_incomplete'),
} satisfies FastifySchema;

export const importKind: UploadKind = {
  entity: null,
  readOptions: optionsReader(entities, true),
  mediaTypes: Object.values(importMediaTypes).flat(),
  // A file that was saved by a spreadsheet, among others.
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
  named: { option: 'upload_id', store: storeKept },
};

/** A file of users or companies, in a form or as the body itself. */
export function createImport(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'import' }, schema: createImportSchema } as const;
  app.post('/v1/imports', options, async (request, reply) => {
    const load = await receiveUpload(system, request, 'import', importKind);
    const job = renderLoad(load, baseUrl(request, system.config.publicUrl));
    // The interface shows these two numbers as strings here, and here alone.
    const answer: ImportRecord = {
      ...job,
      file_size: String(job.file_size),
      total_rows: String(job.total_rows),
    };
    return reply.send(answer);
  });
}
