import { type Static, Type } from 'typebox';
import { type DataType, dataTypes } from '../domain/data-type.ts';
import { type LoadEntity, recordKinds } from '../domain/entity.ts';
import {
  INSPECTED_RECORDS,
  SHOWN_FREQUENT,
  SHOWN_RECORDS,
  SHOWN_SAMPLES,
  SNIFF_BYTES,
} from '../domain/limits.ts';
import { type Preset, presets } from '../domain/load.ts';
import { rejectCodes } from '../domain/reject.ts';
import { readAs } from './read-as.ts';
import { reject } from './reject.ts';
import { component, count, orNull, record } from './schema.ts';

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
    type: Type.Unsafe<DataType | 'array' | 'object' | 'mixed' | null>({
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
      map: record<string>({
        additionalProperties: Type.String(),
        description:
          'What `map` may be given as: what was given, and where an id is missing, or a mapping is saved for files with this header, a proposal.',
      }),
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
            metadata: record({ additionalProperties: true, description: 'Properties; a null removes one.' }),
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
export type Inspection = Static<typeof inspection.schema>;
