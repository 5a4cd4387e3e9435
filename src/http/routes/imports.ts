import { type TSchema, Type } from 'typebox';
import { jobRecord } from '../../api/job.ts';
import { importRecord } from '../../api/load.ts';
import { renderJob } from '../../api/render.ts';
import { text } from '../../api/schema.ts';
import { inspection } from '../../api/upload.ts';
import type { System } from '../../context.ts';
import { type Entity, entities } from '../../domain/entity.ts';
import { errorCodes, InputError } from '../../domain/errors.ts';
import { inspectFile, type Look, renderProblem, renderUnreadable } from '../../load/inspect/inspect-file.ts';
import { findMended, readAsMended } from '../../load/mends.ts';
import { convertingStore } from '../../load/received.ts';
import { lookIn, type RenderedInspection } from '../../load/sandbox-tasks.ts';
import { hintsOf, openUpload } from '../../load/uploads.ts';
import { readRules } from '../../postgres/stores/rules.ts';
import type { Upload as KeptUpload } from '../../postgres/stores/uploads.ts';
import { abortWhenClosed } from '../gone-client.ts';
import { bodyHeaders } from '../parameters.ts';
import { optionFields } from '../plugins/validation.ts';
import { type Route, route } from '../route.ts';
import { importOptions, optionsReader, type UploadOptions, uploadOptions } from '../upload/options.ts';
import { keepFile, receiveUpload } from '../upload/receive-upload.ts';
import {
  anyBody,
  archiveBody,
  columnarBody,
  companiesBody,
  csvBody,
  formBody,
  keptLimits,
  ndjsonBody,
  packedBody,
  storeKept,
  tsvBody,
  type UploadKind,
  usersBody,
  workbookBody,
} from '../upload/upload.ts';

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

export const importKind: UploadKind = {
  entity: null,
  readOptions: optionsReader(importEntities, true),
  mediaTypes: [...Object.keys(rawBodies), 'application/json'],
  // Spreadsheets and other programs send these for the same.
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

const takesFile = {
  access: 'import',
  bodyKind: 'form',
  headers: {
    ...bodyHeaders,
    'Content-Disposition': Type.Optional(
      text('Name of a file that is the body itself.', 'attachment; filename="users.csv"'),
    ),
  },
  query: optionFields({ ...uploadOptions(importEntities), ...importOptions }),
  // JSON is taken too, and left out here: generators derive the type of a call from `application/json` wherever a body has it, and
  // would then have no call that sends a file.
  content: { 'multipart/form-data': formBody(importEntities), ...rawBodies },
} as const;

const uploadRefusals = [
  'empty_file',
  'unrecognised_columns',
  'unsupported_format',
  'duplicate_file',
] as const;

const isAccepted = 'The file was received completely and is stored; the job that loads it is queued.';

const createImport = route({
  ...takesFile,
  at: 'POST /v1/imports',
  operationId: 'createImport',
  summary: 'Import a file',
  description:
    'Starts a job that loads a file of users or companies, of any size: in a form, or as the body itself. A body without a `Content-Type` is accepted, and so is a JSON array, or `{"users":[…]}`, as `application/json`. Refused records do not fail the job; the job reports them.',
  answer: { description: isAccepted, schema: importRecord.ref },
  refuses: [...uploadRefusals, 'not_found'],
  handle: async ({ system, request, base }) => {
    const job = renderJob(await receiveUpload(system, request, 'import', importKind), base());
    // The interface shows these two numbers as strings here, and nowhere else.
    return { ...job, file_size: String(job.file_size), total_rows: String(job.total_rows) };
  },
});

const inspectImport = route({
  ...takesFile,
  at: 'POST /v1/imports/inspect',
  operationId: 'inspectImport',
  summary: 'Inspect a file before it is loaded',
  description:
    'Keeps the file for one day, reads its beginning with the code that loads files, and loads nothing. Takes what `POST /v1/imports` takes. To load the file afterwards, with the same or other options, name its `upload_id` there.',
  answer: { description: 'The content of the file. The file is kept.', schema: inspection.ref },
  refuses: ['empty_file', 'not_found'],
  handle: async ({ system, request, reply, environment }) => {
    const { kept, options: given } = await keepFile(system, request, importKind);
    const { signal } = abortWhenClosed(reply);
    const found = await inspect(system, environment, kept, given, signal);
    const about = {
      upload_id: kept.uploadId,
      expires_at: kept.expiresAt.toISOString(),
      filename: kept.filename,
      file_size: kept.fileSize,
      sha256: kept.sha256,
    };
    if (found instanceof InputError) return { ...about, ...renderUnreadable(found) };
    // The other members were written where the file was read.
    const rest = JSON.stringify({ ...about, ...renderProblem(found) });
    const json = Buffer.concat([Buffer.from(`${rest.slice(0, -1)},`), found.json.subarray(1)]);
    return reply.type('application/json; charset=utf-8').send(json);
  },
});

/** A corrected file of rejects is read as its load reads it. */
function lookAsLoaded({ db, sandboxes }: System, environment: number): Look<RenderedInspection> {
  const look = lookIn(sandboxes, environment);
  return async (store, received, options, signal) => {
    const mended = await findMended({ db, files: store }, environment, received);
    const read = mended === null ? { received, options } : readAsMended({ received, options }, mended);
    return look(store, read.received, read.options, signal);
  };
}

async function inspect(
  system: System,
  environment: number,
  kept: KeptUpload,
  { load, format, filename }: UploadOptions,
  signal: AbortSignal,
): Promise<RenderedInspection | InputError> {
  const limits = keptLimits(system, kept);
  const { source, map, ...options } = load;
  const { chunkBytes } = system.config;
  const hints = {
    ...hintsOf(kept),
    ...(filename !== undefined && { filename }),
    format,
    source,
    map,
    chunkBytes,
  };
  const bytes = openUpload(system.files, kept);
  try {
    const rules = (await readRules(system.db, environment))?.document ?? null;
    const all = { ...options, map, source, rules };
    const store = convertingStore(system, environment);
    return await inspectFile(store, bytes, hints, all, limits, signal, lookAsLoaded(system, environment));
  } catch (error) {
    // The file is kept all the same: other options may read it. Unless it was removed meanwhile, or nobody waits for the answer.
    if (error instanceof InputError && error.status !== errorCodes.not_found && !signal.aborted) return error;
    throw error;
  } finally {
    bytes.destroy();
  }
}

const bulk = {
  users: { operationId: 'bulkIdentifyUsers', body: usersBody, example: 'user_id,name\nu1,Ada Lovelace\n' },
  companies: {
    operationId: 'bulkIdentifyCompanies',
    body: companiesBody,
    example: 'company_id,name\nacme,Acme GmbH\n',
  },
} as const satisfies Record<Entity, object>;

function bulkIdentify(entity: Entity): Route {
  const { operationId, body, example } = bulk[entity];
  const type = `bulk_identify_${entity}` as const;
  const kind: UploadKind = {
    entity,
    readOptions: optionsReader([entity]),
    mediaTypes: ['application/json'],
    otherMediaTypes: [],
    defaultFilename: `${type}.json`,
  };
  return route({
    at: `POST /v1/${entity}/bulk_identify`,
    operationId,
    summary: `Identify ${entity} in bulk`,
    description: `Starts a job that loads an array of ${entity} of any length, or a file of them in a form. Refused items do not fail the job; the job reports them.`,
    access: 'import',
    bodyKind: 'form',
    headers: bodyHeaders,
    query: optionFields(uploadOptions([entity])),
    content: { 'application/json': body, 'multipart/form-data': formBody([entity], example) },
    answer: { status: 202, description: isAccepted, schema: jobRecord.ref },
    refuses: uploadRefusals,
    handle: async ({ system, request, base }) =>
      renderJob(await receiveUpload(system, request, type, kind), base()),
  });
}

export const importRoutes: readonly Route[] = [createImport, inspectImport, ...entities.map(bulkIdentify)];
