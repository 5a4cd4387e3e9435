import { type Static, Type } from 'typebox';
import { published } from '../base/operator-file/schema.ts';
import { rejectCodes } from '../domain/reject.ts';
import { exampleJobId, exampleJobUrl, failure, origin } from './job.ts';
import {
  count,
  defineRecord,
  flag,
  items,
  listOf,
  object,
  orNull,
  record,
  sha256,
  text,
  time,
  url,
  uuid,
} from './schema.ts';

// Members that every document of a run has. A document may have further members.

const tallyFields = {
  read: count('Records read.'),
  inserted: count('Records whose key was new.'),
  updated: count('Records that changed stored data.'),
  unchanged: count('Records that changed nothing.'),
  removed: count('Records that removed a profile.'),
  superseded: count('Records that a later record of the same file with the same key replaced.'),
  rejected: count('Refused records.'),
};

const tallyIs =
  'Records by outcome: read = inserted + updated + unchanged + removed + superseded + rejected.';

export const tally = defineRecord('Tally', tallyIs, tallyFields, {
  ...{ read: 4, inserted: 2, updated: 1, unchanged: 0, removed: 0, superseded: 0, rejected: 1 },
});

export const exportCounts = object(
  'Rows by kind: written = users + companies + events + stream. All are 0 until completion.',
  {
    written: count('Rows in all files.'),
    users: count('Rows of users.'),
    companies: count('Rows of companies.'),
    events: count('Rows of events.'),
    stream: count('Rows of all kinds, in the layout `stream`.'),
  },
);
export type ExportCounts = Static<typeof exportCounts>;

export const deletionCounts = object('IDs by outcome: requested = deleted + not_found + pending.', {
  requested: count('Number of distinct IDs in the request.'),
  deleted: count('Number of IDs that had data. All of it is deleted.'),
  not_found: count('Number of IDs that had no data.'),
  pending: count('Number of IDs that remain.'),
});

export const rejectsByCode = (description: string, ...examples: object[]) =>
  Type.Object(
    {},
    {
      propertyNames: { enum: [...rejectCodes] },
      additionalProperties: Type.Integer({ minimum: 1 }),
      description,
      ...(examples.length > 0 && { examples }),
    },
  );

export const rejectsFields = {
  count: count('Number of refused records.'),
  by_code: rejectsByCode('Refused records by code, most frequent first.', { missing_id: 1 }),
  links: orNull(
    url(
      'URL of the refused records. Null if there are none, or if several jobs have them.',
      `${exampleJobUrl}/rejects`,
    ),
  ),
};

export const runFields = {
  schema: Type.Literal(1, { description: 'Version of the document of a run.' }),
  job_id: orNull(uuid('ID of the job. Null if the run is not a job.', exampleJobId)),
  type: text('What ran: a type of job, or the kind of work that started jobs.', 'import'),
  status: text('Status. `completed`, `failed` and `cancelled` are final.', 'completed'),
  origin: origin('What started the run. Null if it is not known.'),
  request_id: orNull(
    text(
      '`x-request-id` of the request that started the run. Null if no request did.',
      '7f9c1a52-0c4e-4c5e-9b0d-0d8f6f0f2a11',
    ),
  ),
  sources: items('Files that were read.', {
    filename: text('Name of the file as sent.', 'users.csv'),
    bytes: count('Size of the received file in bytes.', 85),
    rows: orNull(count('Data records in the file. Null if it was not read.', 4)),
    sha256: orNull(sha256('SHA-256 of the received bytes. Null if they were not read.', '3b'.repeat(32))),
  }),
  files: items('Files that were written. Empty until completion.', {
    filename: text('Name of the file.', 'users.ndjson.gz'),
    dataset: text('Kind of rows: `users`, `companies`, `events` or `stream`.', 'users'),
    rows: count('Rows in the file.', 1200),
    bytes: count('Size of the file in bytes.', 84213),
    sha256: sha256('SHA-256 of the file.', '3b'.repeat(32)),
  }),
  options: record({
    additionalProperties: true,
    description: 'Options as they were used. Long lists are cut.',
    examples: [{ entity: 'users', map: { 'Customer No': 'user_id' }, dry_run: false }],
  }),
  options_cut: flag('True if the options are cut.', false),
  counts: Type.Union([object(tallyIs, tallyFields), exportCounts, deletionCounts]),
  rejects: Type.Object(rejectsFields, { additionalProperties: true, description: 'The refused records.' }),
  phases: listOf(
    'The phases that the run has reached, oldest first.',
    object('A phase.', {
      phase: text(
        '`accepted`, `started`, `planned` (the plan is complete), `applied` (loading was requested), `resumed` (later work began: the loading of a plan, or a retry), `merged` (the last chunk of a load is done), `repeats_resolved`, `held` (the guard stopped it), `decided` (it was released or discarded), `snapshot` (exports only), or the last status.',
        'accepted',
      ),
      at: time('When the run reached the phase.'),
    }),
  ),
  failure: orNull(failure),
  cursor: orNull(
    text(
      'Cursor for `since` of the next export, which then has exactly what this one does not. Null until completion, and for other runs.',
      '7310:7315:7312',
    ),
  ),
};

const run = Type.Object(runFields);
export type Run = Static<typeof run>;

export function runSchema(): object {
  return published({
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: 'https://sluice.invalid/schemas/run.schema.json',
    title: 'Run',
    description:
      'What ran and what became of it. Each place that gives this document may have members of its own beside these.',
    ...run,
  }) as object;
}
