import { type Static, Type } from 'typebox';
import { MAX_COUNTED_REJECTS } from '../base/limits.ts';
import { optional } from '../base/validation.ts';
import { entities } from '../domain/entity.ts';
import { type CountedKind, countedKinds, loadTypes, onDriftChoices } from '../domain/load.ts';
import { sourceFormats } from '../domain/source.ts';
import {
  exampleJobUrl,
  jobFields,
  lastError,
  listItemFields,
  origin,
  progress,
  queuePosition,
} from '../http/job.ts';
import { rejectsByCode, rejectsFields, runFields, tally } from '../http/run.ts';
import {
  anyObject,
  choice,
  choiceOrNull,
  closed,
  count,
  defineRecord,
  flag,
  item,
  items,
  listOf,
  object,
  ordinal,
  orNull,
  record,
  sha256,
  text,
  texts,
  time,
  url,
  uuid,
} from '../http/schema.ts';
import {
  MAX_PLAN_PROPERTIES,
  MAX_READ_AS_COLUMNS,
  MAX_SAMPLE_PROPERTIES,
  MAX_SAMPLE_VALUE_CHARS,
  MAX_SHOWN_MENDS,
  PLAN_SAMPLE_ROWS,
} from './limits.ts';

export const tallyByKind = Type.Object(
  Object.fromEntries(countedKinds.map((kind) => [kind, tally.ref])) as Record<CountedKind, typeof tally.ref>,
  {
    ...closed,
    description:
      'The counts by kind of record; they add up to `counts`. `unknown` counts records that were refused before their kind was known. Null if no record has an `event_type`.',
    examples: [null],
  },
);

const csvReadAs = object('Dialect of the CSV. Null for other formats.', {
  delimiter: text('Delimiter of the cells. `blanks` means any number of spaces and tabs.', ';'),
  quote: text('Quote character. Empty if there is none.', '"'),
  escape: text(
    'Character that escapes a quote: the quote itself, doubled, or a backslash. Empty if there is none.',
    '"',
  ),
  comment: text('Prefix of comment lines. Empty if there are none.', ''),
  nulls: texts('Unquoted cells that mean the same as an empty one.', []),
  ragged: choice(['refuse', 'pad'], 'Treatment of records with fewer or more cells than the header.'),
  header_line: orNull(ordinal('Line on which the header starts. Null if the file has no header.', 3)),
  columns: listOf(
    `Names of the first ${MAX_READ_AS_COLUMNS} columns, as \`map\` can name them. An inspection lists all columns.`,
    Type.String(),
    { maxItems: MAX_READ_AS_COLUMNS, examples: [['user_id', 'name', 'plan']] },
  ),
  column_count: ordinal('Number of columns in the file.', 3),
});

export const readAs = object('How the file was read: the given options and what was detected.', {
  format: choice(sourceFormats, 'Format of the file.', 'csv'),
  encoding: orNull(text('Encoding of the text. Null if the file is not text.', 'windows-1252')),
  csv: orNull(csvReadAs),
  sheet: orNull(text('Sheet of the workbook that was read. Null for other files.'), null),
  sheets: orNull(texts('Names of all sheets; `sheet` reads another. Null for other files.', null)),
  member: orNull(text('File in the ZIP archive. Null for other files.'), null),
  notes: texts('Remarks for a person, one sentence each.', [
    'Lines 1 to 2 stand before the header and were passed over.',
  ]),
});

const valueFields = {
  appear: count('Values that are added.'),
  change: count('Values that are replaced.'),
  go: count('Values that are removed.'),
  change_type: count('Replaced values whose JSON type changes.'),
};

const counted = (description: string) =>
  object(description, {
    new: count('Profiles that do not exist yet.'),
    changed: count('Profiles that exist and would change.'),
    removed: count('Profiles that would be removed.'),
  });

const entityField = choice(entities, 'Kind of profile.');

const planFields = {
  planned_at: time('When planning began, in UTC with milliseconds.', '2026-11-20T11:58:59.562Z'),
  applied_at: orNull(time('When applying the plan was last requested.', '2026-11-20T12:10:00.000Z')),
  on_drift: choiceOrNull(onDriftChoices, 'The choice with which it was applied. Null until then.', null),
  counts: tally.ref,
  counts_by_kind: orNull(tallyByKind),
  profiles: object('Profiles that would be written, including profiles to which records only refer.', {
    users: counted('Users.'),
    companies: counted('Companies.'),
  }),
  values: object('Property values, over all profiles.', valueFields),
  links: url('URL of the complete plan.', `${exampleJobUrl}/plan`),
};

export const jobDetail = defineRecord('JobDetail', 'A background job that loads a file.', {
  ...runFields,
  ...listItemFields,
  files: { ...runFields.files, examples: [[]] },
  cursor: { ...runFields.cursor, examples: [null] },
  type: choice(loadTypes, 'Type of the job.'),
  completed_rows: count('Records read so far.'),
  progress,
  counts: tally.ref,
  counts_by_kind: orNull(tallyByKind),
  rejects: object('The refused records of the job.', {
    ...rejectsFields,
    by_code: rejectsByCode(
      `Refused records by code, most frequent first. If more than ${MAX_COUNTED_REJECTS} were refused, only the first of the file are counted.`,
      { missing_id: 1 },
    ),
    loaded_since: object('Refused records that were loaded later, from a corrected file of rejects.', {
      count: count('Number of these records.', 0),
      jobs: listOf('The jobs that loaded them.', uuid('A job.'), {
        maxItems: MAX_SHOWN_MENDS,
        examples: [[]],
      }),
    }),
  }),
  dropped_properties: count(
    'Number of properties with an empty name. Their records were loaded without them.',
    0,
  ),
  held: orNull(
    object('Why its guard held the job. Null if it did not.', {
      at: time('When it was held.', '2026-11-20T11:58:59.962Z'),
      reasons: items('What is not as expected.', {
        figure: choice(['rows', 'columns', 'rejected'], 'The figure that is not as expected.'),
        message: text('A sentence for a person.', '412 rows; usual: 745 to 1,256'),
      }),
      decided_at: orNull(time('When it was released or discarded. Null until then.'), null),
      decided_by: origin('Who released or discarded it. Null if that is not known.'),
    }),
    null,
  ),
  last_error: lastError,
  attempts: ordinal('Number of times the job was begun. A retry adds one.'),
  rows_per_second: orNull(count('Average speed since `processing_since`. Null if the job has not begun.')),
  queue_position: queuePosition,
  duplicate_of: orNull(uuid('The earlier job that loaded the same bytes.'), null),
  mends: orNull(uuid('The job whose refused records the file holds, corrected.'), null),
  dry_run: flag(
    'True if everything was checked and nothing written. Also true for a plan that has not been applied.',
  ),
  plan: orNull(object('The planned changes. Null unless the job has a complete plan.', planFields), null),
  read_as: orNull(readAs),
});
export type JobDetail = Static<typeof jobDetail.schema>;

export const importRecord = defineRecord('ImportRecord', 'The background job of an import.', {
  ...jobFields,
  file_size: Type.String({
    pattern: '^[0-9]+$',
    description:
      'Size of the received file in bytes, as a string of digits. In jobs, uploads and inspections it is a number.',
    examples: ['116'],
  }),
  total_rows: Type.String({
    pattern: '^[1-9][0-9]*$',
    description: 'Data records in the file, as a string of digits. In jobs it is a number.',
    examples: ['4'],
  }),
});

const plannedProperty = item({
  entity: entityField,
  name: text('Name of the property.', 'plan'),
  ...valueFields,
  is_new: flag('True if the environment has no property of this name yet.'),
});

const properties = (description: string, example: object) =>
  record({ additionalProperties: true, description, examples: [example] });

const sampledRow = item({
  entity: entityField,
  id: text('ID of the profile.', 'u1'),
  before: properties('Current values of the properties that change.', { plan: 'free' }),
  after: Type.Unsafe<Readonly<Record<string, unknown>> | null>({
    ...properties('Planned values of the properties that change. Null if the profile would be removed.', {
      plan: 'pro',
    }),
    type: ['object', 'null'],
  }),
  company_before: orNull(text('Current company of the user. Null if there is none.', 'acme')),
  company_after: orNull(text('Planned company of the user. Null if there is none.', 'acme')),
  more_properties: count(
    `Number of changing properties beyond ${MAX_SAMPLE_PROPERTIES}, which are not shown.`,
    0,
  ),
});

const plannedEvents = object('Events that would be added.', {
  names: listOf(
    'Events by name, the most frequent first.',
    item({ name: text('Name of the events.', 'signed_up'), count: count('Their number.', 12) }),
    { maxItems: MAX_PLAN_PROPERTIES },
  ),
  more_names: count(`Number of names beyond ${MAX_PLAN_PROPERTIES}, which are not listed.`, 0),
  days: listOf(
    'By day, in order.',
    item({ day: text('Day, in UTC.', '2026-11-20'), count: count('Events of the day.', 12) }),
    { maxItems: MAX_PLAN_PROPERTIES },
  ),
  earlier_days: count(`Number of days before the latest ${MAX_PLAN_PROPERTIES}, which are not listed.`, 0),
});

export const plan = defineRecord('Plan', 'The changes that a load would make.', {
  job_id: jobFields.job_id,
  ...planFields,
  properties: listOf('Changes by property, those with the most changes first.', plannedProperty, {
    maxItems: MAX_PLAN_PROPERTIES,
  }),
  more_properties: count(`Number of properties beyond ${MAX_PLAN_PROPERTIES}, which are not listed.`, 0),
  events: plannedEvents,
  sample: listOf(
    `Some of the rows that change. Values of more than ${MAX_SAMPLE_VALUE_CHARS} characters of JSON are cut and shown as text that ends with an ellipsis. Empty once the rows have expired.`,
    sampledRow,
    { maxItems: PLAN_SAMPLE_ROWS },
  ),
});
export type Plan = Static<typeof plan.schema>;

export const applyBody = object('Options of applying a plan.', {
  on_drift: optional(
    Type.Enum([...onDriftChoices], {
      type: 'string',
      default: 'refuse',
      description:
        'What to do if profiles have changed since the plan: fail the job with `plan_drifted` and write nothing, or load all the same.',
    }),
    'on_drift must be refuse or proceed',
  ),
});

export const uploadOfLoad = defineRecord('UploadOfLoad', 'The file of a load, as an upload.', {
  upload_id: uuid(
    'ID that names the file in `POST /v1/imports/inspect` and `POST /v1/imports`.',
    '01a1f8d2-fdea-7c7d-a3a4-5f3b5d7e9c02',
  ),
  filename: orNull(text('Name of the file as given. Null if none was given.', 'users.csv')),
  content_type: orNull(text('Media type as given. Null if none was given.', 'text/csv')),
  file_size: ordinal('Size of the file in bytes.', 1048576),
  sha256: sha256('SHA-256 of the bytes as sent.', '3b'.repeat(32)),
  file_of: orNull(uuid('The job whose stored file this is. Null if the file was sent.'), null),
  created_at: time('When the file was received.'),
  expires_at: time('Until when the upload is kept: one day.'),
  options: anyObject(
    'The options with which `POST /v1/imports` reads the file as the job did. The file is kept unpacked and in UTF-8, tables as CSV and everything else as NDJSON.',
    { entity: 'users', map: { 'Customer No': 'user_id' }, format: 'csv', encoding: 'utf-8' },
  ),
});
