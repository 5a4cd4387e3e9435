import { type Static, Type } from 'typebox';
import { SHOWN_RECORDS, SNIFF_BYTES } from '../../base/limits.ts';
import { cellTypes, dataTypes } from '../../domain/data-type.ts';
import { recordKinds } from '../../domain/entity.ts';
import { looks } from '../../domain/looks.ts';
import { presets } from '../../domain/source.ts';
import { rejectsByCode } from '../../http/run.ts';
import {
  choice,
  choiceOrNull,
  count,
  defineRecord,
  flag,
  item,
  listOf,
  object,
  ordinal,
  orNull,
  reasonFields,
  record,
  sha256,
  text,
  texts,
  time,
  uuid,
} from '../../http/schema.ts';
import { readAs } from '../../load/api.ts';
import { reject } from '../../load/rejects/api.ts';
import { ruleFinding } from '../rules/api.ts';

export const INSPECTED_RECORDS = 10_000;
export const SHOWN_SAMPLES = 3;
export const SHOWN_FREQUENT = 5;

const column = object('A column of the file, or a key of its records.', {
  name: text('Name of the column in the file.', 'Customer No'),
  becomes: orNull(text('`user_id`, `metadata.plan` and so on. Null if the column is skipped.', 'user_id')),
  reason: text('Reason for this choice.', 'its name looks like that of a user_id'),
  type: choiceOrNull(
    [...dataTypes, 'array', 'object', 'mixed'],
    'Type of the values. `mixed`: several types. Null if there are none.',
    'string',
  ),
  filled: count('Records that have a value.'),
  distinct: count('Distinct values.'),
  samples: listOf('The first values.', Type.Unknown(), { maxItems: SHOWN_SAMPLES, examples: [['17', '18']] }),
  frequent: listOf(
    'The most frequent values, most frequent first.',
    item({
      value: Type.Unknown({ description: 'The value.' }),
      count: count('Records that have the value.'),
    }),
    { maxItems: SHOWN_FREQUENT, examples: [[{ value: '17', count: 1 }]] },
  ),
  cell_type: choiceOrNull(cellTypes, 'Type that `types` gives the column of a CSV. Null for texts.', null),
  fits: listOf(
    'Types that the inspected cells of a CSV all have, the likeliest first. `day_first` and `month_first` together: the values do not tell.',
    choice(cellTypes, 'A type that `types` can give the column.'),
    { examples: [['number']] },
  ),
  looks_like: choiceOrNull(looks, 'Personal data that nearly all values look like. Null for none.', 'email'),
});
export type InspectedColumn = Static<typeof column>;

export const inspection = defineRecord(
  'Inspection',
  'Content of a file, and the result of loading it with these options.',
  {
    upload_id: uuid('ID that names the file in `POST /v1/imports` and in further inspections.'),
    expires_at: time('Until when the file is kept.'),
    filename: orNull(text('Name of the file as sent. Null if it has none.', 'customers.csv')),
    file_size: count('Size in bytes as received.'),
    sha256: sha256('SHA-256 of the received bytes.', '3b'.repeat(32)),
    read_as: Type.Union([readAs, Type.Null()], {
      description: 'How the file is read. Null if it cannot be read.',
    }),
    head: text(
      `The beginning of the decoded text, at most ${SNIFF_BYTES} bytes of UTF-8. A workbook is shown as the CSV of its sheet; JSON other than NDJSON as its records.`,
      'Customer No;Name\n17;Ada\n',
    ),
    entity: choiceOrNull(
      ['users', 'companies', 'auto'],
      'Kind of records. `auto`: each record tells. Null if it is not known.',
    ),
    records: count(`Number of inspected records: at most ${INSPECTED_RECORDS}, fewer in a wide file.`),
    whole_file: flag('True if all records of the file were inspected.'),
    columns: listOf('The columns, in the order of the file.', column),
    column_names: orNull(
      texts('Names of the columns, if a record of the file names them.', ['Customer No', 'Name']),
    ),
    map: record<string>({
      additionalProperties: Type.String(),
      description: 'A value for `map`: the one that was given, or a proposal if an ID column is missing.',
      examples: [{ 'Customer No': 'user_id' }],
    }),
    preset: choiceOrNull(
      presets,
      'The preset that was given, or one that is proposed because the file is an export of another product.',
      null,
    ),
    problem: Type.Union(
      [object('The problem.', { ...reasonFields, details: text('The place at fault.') }), Type.Null()],
      { description: 'Why the file cannot be loaded with these options. Null if it can.', examples: [null] },
    ),
    rejects: object('Records that would be refused.', {
      count: count('Number of records that would be refused.'),
      by_code: rejectsByCode('Refused records by code.'),
      items: listOf('The first of them.', reject.ref, { maxItems: SHOWN_RECORDS }),
    }),
    findings: listOf('The rules of the environment that records break without being refused.', ruleFinding),
    rows: listOf(
      'The first records as they would be stored.',
      Type.Object(
        {
          row: ordinal('Position among the data records of the file.'),
          event_type: choice(recordKinds, 'Kind of record.'),
          metadata: record({ additionalProperties: true, description: 'Properties; a null removes one.' }),
        },
        {
          additionalProperties: true,
          description: 'A record with its IDs; an event also has its name and time.',
          examples: [{ row: 1, event_type: 'identify_user', user_id: '17', metadata: { Name: 'Ada' } }],
        },
      ),
      { maxItems: SHOWN_RECORDS },
    ),
  },
);
export type Inspection = Static<typeof inspection.schema>;
