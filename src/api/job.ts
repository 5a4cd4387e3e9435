import { type Static, Type } from 'typebox';
import { deletionTypes } from '../domain/deletion.ts';
import { MAX_COUNTED_AHEAD } from '../domain/limits.ts';
import { loadStatuses, loadTypes } from '../domain/load.ts';
import { originKinds } from '../domain/task.ts';
import { component, orNull, record } from './schema.ts';

export const idOptions = (what: string) => ({
  format: 'uuid',
  description: `Id of the ${what}, as its record has it.`,
  examples: ['01a1f8d2-fdea-7c7d-a3a4-5f3b5d7e9c01'],
});

export const jobIdOptions = idOptions('job');

/** In examples. */
export const exampleJobId = '01a1f8d2-fdea-7c7d-a3a4-5f3b5d7e9c01';

export const exampleJobUrl = `https://sluice.example.com/v1/background_jobs/${exampleJobId}`;

export const jobFields = {
  job_id: Type.String({
    format: 'uuid',
    description: 'Version 7: ids sort by the time of acceptance.',
    examples: [exampleJobId],
  }),
  type: Type.Enum([...loadTypes, 'export', ...deletionTypes] as const, {
    type: 'string',
    description: 'What the job does.',
  }),
  status: Type.Enum([...loadStatuses], {
    type: 'string',
    description:
      'queued → processing → completed, failed or cancelled. A job some of whose records were refused is completed.',
    examples: ['completed'],
  }),
  filename: Type.String({
    description: 'Of a load, the name that the file came with; of other jobs, what they are about.',
    examples: ['users.csv'],
  }),
  file_size: Type.Integer({
    minimum: 0,
    description: 'Bytes as received; of an export, written so far; of a deletion 0.',
    examples: [85],
  }),
  total_rows: Type.Integer({
    minimum: 0,
    description: 'Data records in the file; of an export, written so far; of a deletion, ids to delete.',
    examples: [4],
  }),
  start_time: Type.String({
    format: 'date-time',
    description: 'When the job was accepted. UTC, with milliseconds.',
    examples: ['2026-11-20T11:58:59.562Z'],
  }),
  end_time: orNull(
    Type.String({
      format: 'date-time',
      description: 'When the job ended; null until then.',
      examples: ['2026-11-20T11:59:00.102Z'],
    }),
  ),
  links: Type.String({
    format: 'uri',
    description: 'Absolute URL of the job.',
    examples: [exampleJobUrl],
  }),
};

export const jobRecord = component(
  'JobRecord',
  Type.Object(jobFields, {
    additionalProperties: false,
    description: 'A background job.',
    examples: [
      {
        job_id: exampleJobId,
        type: 'bulk_identify_users',
        status: 'queued',
        filename: 'users.csv',
        file_size: 85,
        total_rows: 4,
        start_time: '2026-11-20T11:58:59.562Z',
        end_time: null,
        links: exampleJobUrl,
      },
    ],
  }),
);
export type JobRecord = Static<typeof jobRecord.schema>;

export const listItemFields = {
  ...jobFields,
  processing_since: orNull(
    Type.String({
      format: 'date-time',
      description:
        'When the current work, or the last, began. For an applied plan it is the start of the loading, not of the planning. Null while the job waits.',
      examples: ['2026-11-20T11:58:59.702Z'],
    }),
  ),
  elapsed_time: Type.Integer({ minimum: 0, description: 'Whole seconds from start to end, or to now.' }),
};

export const failure = Type.Object(
  {
    error_code: Type.String({ description: 'Stable; for programs.', examples: ['too_many_rejects'] }),
    message: Type.String({ description: 'A sentence for a person.' }),
  },
  { additionalProperties: false, description: 'Why the job failed; null unless it did.', examples: [null] },
);

export const jobListItem = component(
  'JobListItem',
  Type.Object(listItemFields, {
    additionalProperties: false,
    description: 'A background job as the list shows it.',
  }),
);
export type JobListItem = Static<typeof jobListItem.schema>;

export const queuePosition = orNull(
  Type.Integer({
    minimum: 0,
    description: `Unfinished jobs before this one, counted up to ${MAX_COUNTED_AHEAD} of each kind; 0 once it runs, null once it ended.`,
  }),
);

export const lastError = orNull(
  Type.String({
    description:
      'What the last try ran into, as long as the job goes on trying; null where nothing is wrong.',
    examples: [null, 'chunk 3: canceling statement due to statement timeout'],
  }),
);

export const progress = Type.Number({
  minimum: 0,
  maximum: 1,
  description: 'The part that is done.',
  examples: [1],
});

/** Each kind of job names its own types: so programs in typed languages can tell the answers apart. */
export const typeOf = <const T extends string>(types: readonly T[]) =>
  Type.Enum([...types], { type: 'string', description: 'What the job does.' });

export const jobHistory = component(
  'JobHistory',
  Type.Object(
    {
      job_id: jobFields.job_id,
      request_id: orNull(
        Type.String({
          description: 'The `x-request-id` of the request that it came by; null if it came another way.',
          examples: ['7f9c1a52-0c4e-4c5e-9b0d-0d8f6f0f2a11'],
        }),
      ),
      origin: orNull(
        Type.Object(
          {
            kind: Type.Enum([...originKinds], { type: 'string', description: 'Who or what started it.' }),
            name: orNull(
              Type.String({
                description: 'Id of the key, name of the schedule, or place in the inbox.',
                examples: ['q8m2x0v7c1rt'],
              }),
            ),
          },
          { additionalProperties: false, description: 'Null: that is not known.' },
        ),
      ),
      parameters: record({
        additionalProperties: true,
        description: 'What it was told to do. Of long lists the beginning is shown.',
        examples: [{ entity: 'users', map: { 'Customer No': 'user_id' }, dry_run: false }],
      }),
      parameters_cut: Type.Boolean({
        description: 'There is more of the parameters than is shown.',
        examples: [false],
      }),
      phases: Type.Array(
        Type.Object(
          {
            phase: Type.String({
              description:
                '`accepted`, `started`, `planned` (its plan is complete), `applied` (its loading was requested), `resumed` (later work began: the loading of a plan, or a retry), `merged` (last chunk of a load is done), `repeats_resolved`, `snapshot` (exports only), `completed`, `failed`, `cancelled`.',
              examples: ['accepted'],
            }),
            at: Type.String({ format: 'date-time', description: 'When it was reached.' }),
          },
          { additionalProperties: false },
        ),
        { description: 'The phases that it has reached, oldest first.' },
      ),
    },
    { additionalProperties: false, description: 'What came before a job, and how it went.' },
  ),
);
export type JobHistory = Static<typeof jobHistory.schema>;

export const bulkResult = component(
  'BulkResult',
  Type.Object(
    {
      count: Type.Integer({ minimum: 0, description: 'Jobs that match and with which it can be done.' }),
      done: Type.Integer({ minimum: 0, description: 'Of these, those with which it is done.' }),
      refused: Type.Array(
        Type.Object(
          {
            job_id: Type.String(jobIdOptions),
            error_code: Type.String({
              description: 'Stable; for programs.',
              examples: ['job_not_cancellable'],
            }),
            message: Type.String({ description: 'A sentence for a person.' }),
          },
          { additionalProperties: false },
        ),
        { description: 'The others: something else was done with them meanwhile.' },
      ),
    },
    {
      additionalProperties: false,
      description: 'What became of jobs that were cancelled or retried together.',
      examples: [{ count: 12, done: 12, refused: [] }],
    },
  ),
);
export type BulkResult = Static<typeof bulkResult.schema>;
