import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { inspection } from '../../api/inspection.ts';
import { jobRecord } from '../../api/job.ts';
import { importRecord } from '../../api/load.ts';
import type { System } from '../../context.ts';
import type { Mapped } from '../../domain/column-map.ts';
import type { Entity } from '../../domain/entity.ts';
import { errorCodes, InputError } from '../../domain/errors.ts';
import { convertingStore } from '../../load/accept-load.ts';
import { inspectFile } from '../../load/inspect/inspect-file.ts';
import { type renderFound, renderOffer, renderUnreadable } from '../../load/inspect/render-inspection.ts';
import { renderLoad } from '../../load/render-load.ts';
import { lookIn, type RenderedInspection } from '../../load/sandbox-tasks.ts';
import { findOffered, inspectAndOffer, type OfferedInspection } from '../../load/saved-mappings.ts';
import { hintsOf, openUpload, type WholeUpload } from '../../load/uploads.ts';
import { baseUrl } from '../page.ts';
import { environmentId } from '../plugins/auth.ts';
import { optionFields } from '../plugins/validation.ts';
import { bodyHeaders } from '../request-headers.ts';
import { refusals } from '../schemas/answers.ts';
import type { JobRecord } from '../schemas/job-record.ts';
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
  uploadAnswers,
  usersBody,
  workbookBody,
} from '../upload/bodies.ts';
import { importOptions, optionsReader, type UploadOptions, uploadOptions } from '../upload/options.ts';
import { keepFile, receiveUpload } from '../upload/receive-upload.ts';
import { keptLimits, storeKept, type UploadKind } from '../upload/upload.ts';

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
const importHeaders = Type.Object({
  ...bodyHeaders,
  'Content-Disposition': Type.Optional(
    Type.String({
      description: 'Names a file that is the body itself.',
      examples: ['attachment; filename="users.csv"'],
    }),
  ),
});

const importParameters = optionFields({ ...uploadOptions(entities), ...importOptions });

const importBody = {
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

type Inspected = Static<typeof inspection.schema>;

const inspectImportSchema = {
  operationId: 'inspectImport',
  summary: 'Inspect a file before it is loaded',
  description: `Keeps the file for a day, looks at its beginning with the code that loads files, and loads nothing. Takes what \`POST /v1/imports\` takes; that one loads the file by its \`upload_id\`, with other options if need be.`,
  tags: ['loads'],
  headers: importHeaders,
  querystring: importParameters,
  body: importBody,
  response: {
    200: {
      description: 'What the file holds. The file is kept.',
      content: { 'application/json': { schema: inspection.ref } },
    },
    ...refusals(
      'invalid_field',
      'missing_field',
      'empty_file',
      'not_found',
      'upload_too_slow',
      'upload_incomplete',
      'payload_too_large',
      'unsupported_media_type',
    ),
  },
} satisfies FastifySchema;

/** What a file holds, and what would become of it. */
export function inspectImport(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'import' }, schema: inspectImportSchema } as const;
  app.post('/v1/imports/inspect', options, async (request, reply) => {
    const { kept, options: given } = await keepFile(system, request, importKind);
    const found = await inspect(system, environmentId(request), kept, given);
    const { uploadId, filename, fileSize, sha256, expiresAt } = kept;
    const about = {
      upload_id: uploadId,
      expires_at: expiresAt.toISOString(),
      filename,
      file_size: fileSize,
      sha256,
    };
    if (found instanceof InputError) {
      return reply.send({ ...about, ...renderUnreadable(found, given.mapping) } satisfies Inspected);
    }
    const rest = { ...about, ...renderOffer(found) } satisfies Omit<Inspected, Written>;
    const json = [Buffer.from(`${JSON.stringify(rest).slice(0, -1)},`), found.found.json.subarray(1)];
    return reply.type('application/json; charset=utf-8').send(Buffer.concat(json));
  });
}

/** The members of the answer that are written where the file is read. */
type Written = keyof ReturnType<typeof renderFound>;

async function inspect(
  system: System,
  environment: number,
  kept: WholeUpload,
  { load, format, filename, mapping }: UploadOptions,
): Promise<OfferedInspection<RenderedInspection> | InputError> {
  const said = { ...hintsOf(kept), ...(filename !== undefined && { filename }) };
  const limits = keptLimits(system, kept);
  const look = async ({ source, map, format, ...asked }: typeof load & Mapped, mapSays: string) => {
    const bytes = openUpload(system.files, kept);
    try {
      const { chunkBytes } = system.config;
      const hints = { ...said, format: format ?? undefined, source, map, chunkBytes };
      const { signal } = new AbortController();
      const options = { ...asked, map, mapSays };
      const store = convertingStore(system, environment);
      const lookAt = lookIn(system.sandboxes, environment);
      return await inspectFile(store, bytes, hints, options, limits, signal, lookAt);
    } finally {
      bytes.destroy();
    }
  };
  const find = (names: readonly string[]) => findOffered(system.db, environment, names);
  try {
    const asked = { ...load, format: format ?? null };
    return await inspectAndOffer(look, asked, mapping, find);
  } catch (error) {
    // It is kept all the same: other options may read it. Unless it was removed meanwhile.
    if (error instanceof InputError && error.status !== errorCodes.not_found) return error;
    throw error;
  }
}

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
