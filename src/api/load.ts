import { type Static, type TSchema, Type } from 'typebox';
import { entities } from '../domain/entity.ts';
import { MAX_COUNTED_REJECTS, MAX_SHOWN_AMENDMENTS } from '../domain/limits.ts';
import { loadTypes, type OnDrift, onDriftChoices } from '../domain/load.ts';
import { rejectCodes } from '../domain/reject.ts';
import {
  exampleJobId,
  exampleJobUrl,
  failure,
  jobFields,
  lastError,
  listItemFields,
  progress,
  queuePosition,
  typeOf,
} from './job.ts';
import { readAs } from './read-as.ts';
import { closed, component, count, envelope, orNull } from './schema.ts';

export const tally = component(
  'Tally',
  Type.Object(
    {
      read: count('Records read.'),
      inserted: count('Records whose key was not there before.'),
      updated: count('Records that changed what was stored.'),
      unchanged: count('Records that brought nothing new.'),
      superseded: count('A later record of the same file has the same key.'),
      rejected: count('Records that were refused, and have not been mended since.'),
      amended: count('Records that were refused, and were mended since by other jobs.'),
    },
    {
      additionalProperties: false,
      description: 'read = inserted + updated + unchanged + superseded + rejected + amended.',
      examples: [{ read: 4, inserted: 2, updated: 1, unchanged: 0, superseded: 0, rejected: 1, amended: 0 }],
    },
  ),
);
export type Tally = Static<typeof tally.schema>;

const tallyByKind = Type.Object(
  {
    identify_user: tally.ref,
    identify_company: tally.ref,
    track: tally.ref,
    page_view: tally.ref,
    unknown: tally.ref,
  },
  {
    additionalProperties: false,
    description:
      'The counts by kind of record; they add up to `counts`. `unknown`: refused before its kind could be told. Null if no record has an `event_type`.',
    examples: [null],
  },
);

const rejects = Type.Object(
  {
    count: count('How many there are.'),
    by_code: Type.Object(
      {},
      {
        propertyNames: { enum: [...rejectCodes] },
        additionalProperties: Type.Integer({ minimum: 1 }),
        description: `How many of each code, most frequent first. Of more than ${MAX_COUNTED_REJECTS} refused records those that stand first are counted.`,
        examples: [{ missing_id: 1 }],
      },
    ),
    links: Type.String({
      format: 'uri',
      description: 'Where the refused records are.',
      examples: [`${exampleJobUrl}/rejects`],
    }),
  },
  { additionalProperties: false, description: 'The refused records of the job.' },
);

const amendment = Type.Object(
  {
    job_id: jobFields.job_id,
    status: jobFields.status,
    total_rows: count('Records in its file.'),
    links: jobFields.links,
  },
  { additionalProperties: false },
);

export const valueFields = {
  appear: count('Values that are set where there is none.'),
  change: count('Values in whose place another comes.'),
  go: count('Values that are removed.'),
  change_type: count('Of those that change, those that become another type of JSON.'),
};

const counted = (description: string) =>
  Type.Object(
    { new: count('That are not there.'), changed: count('That are there and would change.') },
    { ...closed, description },
  );

/** `tally` and `byKind`: how counts are shown. */
export function planFieldsOf<T extends TSchema, K extends TSchema>(tally: T, byKind: K) {
  const date = (description: string, example: string) =>
    Type.String({ format: 'date-time', description, examples: [example] });
  return {
    planned_at: date('When the plan was begun. UTC, with milliseconds.', '2026-11-20T11:58:59.562Z'),
    applied_at: orNull(date('When it was last asked to be applied.', '2026-11-20T12:10:00.000Z')),
    on_drift: Type.Unsafe<OnDrift | null>({
      type: ['string', 'null'],
      enum: [...onDriftChoices, null],
      description: 'What it was applied with; null until then.',
      examples: [null],
    }),
    counts: tally,
    counts_by_kind: byKind,
    profiles: Type.Object(
      { users: counted('Users.'), companies: counted('Companies.') },
      {
        ...closed,
        description: 'Profiles that would be written, also those that other records name or describe.',
      },
    ),
    values: Type.Object(valueFields, { ...closed, description: 'Values of properties, of all profiles.' }),
    links: Type.String({
      format: 'uri',
      description: 'Where the plan is in full.',
      examples: [`${exampleJobUrl}/plan`],
    }),
  };
}

type PlanFields = ReturnType<typeof planFieldsOf<TSchema, TSchema>>;

export function planOf<T extends PlanFields>(fields: T) {
  return Type.Object(fields, {
    ...closed,
    description: 'What the load would do, or was to do; null if there is no plan, or none yet.',
    examples: [null],
  });
}

export const entityField = Type.Enum([...entities], {
  type: 'string',
  description: 'Of what kind of profile.',
});

/** What every plan has. */
export const planFields = planFieldsOf(tally.ref, orNull(tallyByKind));

export const jobDetail = component(
  'JobDetail',
  Type.Object(
    {
      ...listItemFields,
      type: typeOf(loadTypes),
      completed_rows: count('Records read so far.'),
      progress,
      counts: tally.ref,
      counts_by_kind: orNull(tallyByKind),
      rejects,
      failure: orNull(failure),
      last_error: lastError,
      attempts: Type.Integer({ minimum: 1, description: 'How often the job was begun; a retry adds one.' }),
      rows_per_second: orNull(count('Since `processing_since`; null if it has not begun.')),
      queue_position: queuePosition,
      sha256: Type.String({
        pattern: '^[0-9a-f]{64}$',
        description: 'Of the bytes as received.',
        examples: ['3b'.repeat(32)],
      }),
      duplicate_of: orNull(
        Type.String({
          format: 'uuid',
          description: 'The job that loaded the same bytes before.',
          examples: [null],
        }),
      ),
      amends: orNull(
        Type.String({
          format: 'uuid',
          description: 'The job whose refused records this one mends.',
          examples: [null],
        }),
      ),
      amendments: Type.Array(amendment, {
        maxItems: MAX_SHOWN_AMENDMENTS,
        description: 'Jobs that mend refused records of this one, latest first.',
        examples: [[]],
      }),
      dry_run: Type.Boolean({
        description:
          'Everything was checked and nothing written; so it is with a plan that is not applied yet.',
      }),
      plan: orNull(planOf(planFields)),
      read_as: orNull(readAs),
    },
    { additionalProperties: false, description: 'Everything there is to know of a background job.' },
  ),
);
export type JobDetail = Static<typeof jobDetail.schema>;

const time = (description: string, example: string) =>
  orNull(Type.String({ format: 'date-time', description, examples: [example] }));

export const loadChunk = component(
  'LoadChunk',
  Type.Object(
    {
      chunk: count('Its number in the file, from 0.'),
      state: Type.Enum(['waiting', 'running', 'done'], {
        type: 'string',
        description: '`running`: a worker has it.',
        examples: ['done'],
      }),
      attempt: count('The number of the attempt that did it or does it; 0: none was begun.'),
      losses: count('Workers that vanished with it.'),
      worker: orNull(
        Type.String({
          description: 'Host and process id of the worker; null while it waits.',
          examples: ['loader-1 4711'],
        }),
      ),
      start_time: time('When that worker took it.', '2026-11-20T11:58:59.600Z'),
      end_time: time('When its rows were committed.', '2026-11-20T11:59:00.020Z'),
      ms: orNull(Type.Integer({ minimum: 0, description: 'Between the two.', examples: [420] })),
      rows: count('Records in it.'),
      bytes: count('Of the stored file.'),
      rejected: orNull(
        Type.Integer({ minimum: 0, description: 'Records of it that were refused; null until it is done.' }),
      ),
      last_error: orNull(
        Type.String({
          description: 'What its last try ran into; null where nothing is wrong.',
          examples: [null],
        }),
      ),
    },
    {
      additionalProperties: false,
      description: 'A part of a load: unit of work, of retries and of parallelism.',
    },
  ),
);
export type LoadChunk = Static<typeof loadChunk.schema>;

export const chunkPage = envelope('LoadChunkPage', loadChunk.ref, 'A page of chunks.', {
  total_count: Type.Integer({ minimum: 0, description: 'Chunks of the load, on all pages.' }),
});
export type LoadChunkPage = Static<typeof chunkPage.schema>;

/** `POST /v1/imports` shows two of the numbers as strings. */
export const importRecord = component(
  'ImportRecord',
  Type.Object(
    {
      ...jobFields,
      file_size: Type.String({
        pattern: '^[0-9]+$',
        description:
          'Bytes as received, as a string of digits. In jobs, uploads and inspections it is a number.',
        examples: ['116'],
      }),
      total_rows: Type.String({
        pattern: '^[1-9][0-9]*$',
        description: 'Data records in the file, as a string of digits. In jobs it is a number.',
        examples: ['4'],
      }),
    },
    {
      additionalProperties: false,
      description: 'The background job of an import.',
      examples: [
        {
          job_id: exampleJobId,
          type: 'import',
          status: 'queued',
          filename: 'users.csv',
          file_size: '116',
          total_rows: '4',
          start_time: '2026-11-20T11:58:59.562Z',
          end_time: null,
          links: exampleJobUrl,
        },
      ],
    },
  ),
);
export type ImportRecord = Static<typeof importRecord.schema>;
