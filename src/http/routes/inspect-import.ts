import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import type { System } from '../../context.ts';
import { dataTypes } from '../../domain/data-type.ts';
import type { LoadEntity } from '../../domain/entity.ts';
import { errorCodes, InputError } from '../../domain/errors.ts';
import { recordKinds } from '../../domain/event.ts';
import { SNIFF_BYTES } from '../../domain/limits.ts';
import { type Preset, presets } from '../../domain/load.ts';
import { rejectCodes } from '../../domain/reject.ts';
import type { Mapped } from '../../domain/saved-mapping.ts';
import { convertingStore } from '../../load/accept-load.ts';
import { SHOWN_FREQUENT, SHOWN_SAMPLES, type ValueType } from '../../load/inspect/column-values.ts';
import { INSPECTED_RECORDS } from '../../load/inspect/file-values.ts';
import { inspectFile, SHOWN_RECORDS } from '../../load/inspect/inspect-file.ts';
import { type renderFound, renderOffer, renderUnreadable } from '../../load/inspect/render-inspection.ts';
import { lookIn, type RenderedInspection } from '../../load/sandbox-tasks.ts';
import { findOffered, inspectAndOffer, type OfferedInspection } from '../../load/saved-mappings.ts';
import { hintsOf, openUpload, type WholeUpload } from '../../load/uploads.ts';
import { environmentId } from '../plugins/auth.ts';
import { component, orNull, refusals } from '../schemas/answers.ts';
import { readAs } from '../schemas/read-as.ts';
import type { UploadOptions } from '../upload/options.ts';
import { keepFile } from '../upload/receive-upload.ts';
import { keptLimits } from '../upload/upload.ts';
import { importBody, importHeaders, importKind, importParameters } from './create-import.ts';
import { reject } from './list-rejects.ts';

const count = (description: string) => Type.Integer({ minimum: 0, description });

const column = Type.Object(
  {
    name: Type.String({ description: 'As the file has it.', examples: ['Customer No'] }),
    becomes: orNull(
      Type.String({
        description: '`user_id`, `metadata.plan` and so on; null: it is passed over.',
        examples: ['user_id'],
      }),
    ),
    reason: Type.String({ description: 'Why.', examples: ['its name looks like that of a user_id'] }),
    type: Type.Unsafe<ValueType | null>({
      type: ['string', 'null'],
      enum: [...dataTypes, 'array', 'object', 'mixed', null],
      description: 'Of its values; `mixed`: of several types; null: it has none.',
      examples: ['string'],
    }),
    filled: count('Records that have a value.'),
    distinct: count('Values that differ.'),
    samples: Type.Array(Type.Unknown(), {
      maxItems: SHOWN_SAMPLES,
      description: 'The first values.',
      examples: [['17', '18']],
    }),
    frequent: Type.Array(
      Type.Object(
        { value: Type.Unknown({ description: 'The value.' }), count: count('Records that have it.') },
        { additionalProperties: false },
      ),
      {
        maxItems: SHOWN_FREQUENT,
        description: 'The values that come most often, the most frequent first.',
        examples: [[{ value: '17', count: 1 }]],
      },
    ),
  },
  { additionalProperties: false, description: 'A column, or a key that records have.' },
);

const example = {
  upload_id: '01a1f8d2-fdea-7c7d-a3a4-5f3b5d7e9c02',
  expires_at: '2026-11-21T11:58:59.562Z',
  filename: 'customers.csv',
  file_size: 30,
  sha256: 'b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9',
  read_as: {
    format: 'csv',
    encoding: 'utf-8',
    csv: {
      delimiter: ';',
      quote: '"',
      escape: '"',
      comment: '',
      nulls: [],
      ragged: 'refuse',
      header_line: 1,
      columns: ['Customer No', 'Name'],
      column_count: 2,
    },
    sheet: null,
    member: null,
    notes: [],
  },
  head: 'Customer No;Name\n17;Ada\n',
  entity: 'users',
  records: 1,
  whole_file: true,
  columns: [
    {
      name: 'Customer No',
      becomes: 'user_id',
      reason: 'its name looks like that of a user_id',
      type: 'string',
      filled: 1,
      distinct: 1,
      samples: ['17'],
      frequent: [{ value: '17', count: 1 }],
    },
    {
      name: 'Name',
      becomes: 'metadata.Name',
      reason: 'every other column is a property',
      type: 'string',
      filled: 1,
      distinct: 1,
      samples: ['Ada'],
      frequent: [{ value: 'Ada', count: 1 }],
    },
  ],
  column_names: ['Customer No', 'Name'],
  map: { 'Customer No': 'user_id' },
  preset: null,
  mapping: null,
  saved_mappings: [],
  problem: {
    error_code: 'unrecognised_columns',
    message: 'the header names no user_id or company_id column',
    details: 'columns seen: Customer No, Name',
  },
  rejects: { count: 0, by_code: {}, items: [] },
  rows: [{ row: 1, event_type: 'identify_user', user_id: '17', metadata: { Name: 'Ada' } }],
};

export const inspection = component(
  'Inspection',
  Type.Object(
    {
      upload_id: Type.String({
        format: 'uuid',
        description: 'Names the file in `POST /v1/imports`, and in another inspection.',
      }),
      expires_at: Type.String({ format: 'date-time', description: 'Until when it is kept.' }),
      filename: orNull(Type.String({ description: 'As it was sent; null: without a name.' })),
      file_size: count('Bytes as received.'),
      sha256: Type.String({ pattern: '^[0-9a-f]{64}$', description: 'Of the bytes as received.' }),
      read_as: Type.Union([readAs, Type.Null()], {
        description: 'How the file is written; null if it could not be read.',
      }),
      head: Type.String({
        description: `The beginning of the text as it was decoded, ${SNIFF_BYTES} bytes of UTF-8 at most: of a workbook its sheet as CSV, of JSON that is no NDJSON the records as such.`,
      }),
      entity: Type.Unsafe<LoadEntity | null>({
        type: ['string', 'null'],
        enum: ['users', 'companies', 'auto', null],
        description: 'What the records are; `auto`: each says it; null: nothing says it.',
      }),
      records: count(`Records that were inspected: at most ${INSPECTED_RECORDS}, fewer in a wide file.`),
      whole_file: Type.Boolean({ description: 'All records of the file were looked at.' }),
      columns: Type.Array(column, { description: 'In the order of the file.' }),
      column_names: Type.Unsafe<string[] | null>({
        type: ['array', 'null'],
        items: { type: 'string' },
        description:
          'The names of the columns, where a record of the file names them: `column_names` of a mapping that is to be offered for such files.',
      }),
      map: Type.Object(
        {},
        {
          additionalProperties: Type.String(),
          description:
            'What `map` may be given as: what was given, and where an id is missing, or a mapping is saved for files with this header, a proposal.',
        },
      ),
      preset: Type.Unsafe<Preset | null>({
        type: ['string', 'null'],
        enum: [...presets, null],
        description:
          'The preset that was given, or that is proposed because the file is an export of another product.',
      }),
      mapping: orNull(
        Type.String({
          description: 'The saved mapping that was named, or is proposed.',
          examples: ['customers'],
        }),
      ),
      saved_mappings: Type.Array(Type.String(), {
        description: 'The mappings that are saved for files with this header, that used last first.',
        examples: [['customers']],
      }),
      problem: Type.Union(
        [
          Type.Object(
            {
              error_code: Type.String({ description: 'Stable; for programs.' }),
              message: Type.String({ description: 'A sentence for a person.' }),
              details: Type.String({ description: 'Where.' }),
            },
            { additionalProperties: false, description: 'What is wrong.' },
          ),
          Type.Null(),
        ],
        { description: 'Why the file cannot be loaded with these options; null: it can.' },
      ),
      rejects: Type.Object(
        {
          count: count('How many of the records would be refused.'),
          by_code: Type.Object(
            {},
            {
              propertyNames: { enum: [...rejectCodes] },
              additionalProperties: Type.Integer({ minimum: 1 }),
              description: 'How many of each code.',
            },
          ),
          items: Type.Array(reject.ref, { maxItems: SHOWN_RECORDS, description: 'The first of them.' }),
        },
        { additionalProperties: false, description: 'The records that would be refused.' },
      ),
      rows: Type.Array(
        Type.Object(
          {
            row: Type.Integer({ minimum: 1, description: 'Position among the data records of the file.' }),
            event_type: Type.Enum([...recordKinds], { type: 'string', description: 'What the record is.' }),
            metadata: Type.Object(
              {},
              { additionalProperties: true, description: 'Properties; a null removes one.' },
            ),
          },
          { additionalProperties: true, description: 'With its ids, and an event with its name and time.' },
        ),
        { maxItems: SHOWN_RECORDS, description: 'The first records as they would be stored.' },
      ),
    },
    {
      additionalProperties: false,
      description: 'What a file holds, and what would become of it.',
      examples: [example],
    },
  ),
);
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
