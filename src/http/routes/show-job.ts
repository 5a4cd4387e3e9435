import type { FastifyInstance, FastifySchema } from 'fastify';
import { type Static, Type } from 'typebox';
import { renderJobDetail, requireJob } from '../../background-jobs/jobs.ts';
import type { System } from '../../context.ts';
import { deletionTypes } from '../../domain/deletion.ts';
import { MAX_COUNTED_AHEAD, MAX_COUNTED_REJECTS, MAX_SHOWN_AMENDMENTS } from '../../domain/limits.ts';
import { loadTypes } from '../../domain/load.ts';
import { rejectCodes } from '../../domain/reject.ts';
import { baseUrl } from '../page.ts';
import { environmentId } from '../plugins/auth.ts';
import { component, jobRefusals, orNull } from '../schemas/answers.ts';
import {
  exampleJobUrl,
  exportFields,
  failure,
  jobFields,
  jobIdOf,
  jobParameters,
  listItemFields,
  warnings,
} from '../schemas/job-record.ts';
import { planFieldsOf, planOf } from '../schemas/plan.ts';
import { readAs } from '../schemas/read-as.ts';

const queuePosition = orNull(
  Type.Integer({
    minimum: 0,
    description: `Unfinished jobs before this one, counted up to ${MAX_COUNTED_AHEAD} of each kind; 0 once it runs, null once it ended.`,
  }),
);

const lastError = orNull(
  Type.String({
    description:
      'What the last try ran into, as long as the job goes on trying; null where nothing is wrong.',
    examples: [null, 'chunk 3: canceling statement due to statement timeout'],
  }),
);

const count = (description: string) => Type.Integer({ minimum: 0, description });

const progress = Type.Number({
  minimum: 0,
  maximum: 1,
  description: 'The part that is done.',
  examples: [1],
});

/** Each kind of job names its own types: so programs in typed languages can tell the answers apart. */
const typeOf = <const T extends string>(types: readonly T[]) =>
  Type.Enum([...types], { type: 'string', description: 'What the job does.' });

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
type JobDetail = Static<typeof jobDetail.schema>;

export const exportJobDetail = component(
  'ExportJobDetail',
  Type.Object(
    {
      ...listItemFields,
      type: exportFields.type,
      completed_rows: Type.Integer({ minimum: 0, description: 'Rows written so far.' }),
      progress: exportFields.progress,
      warnings,
      failure: orNull(failure),
      last_error: lastError,
      attempts: Type.Integer({ minimum: 0, description: 'How often it was begun.' }),
      rows_per_second: orNull(Type.Integer({ minimum: 0, description: 'While it ran; null if it has not.' })),
    },
    { additionalProperties: false, description: 'An export, as background jobs are shown.' },
  ),
);
type ExportJobDetail = Static<typeof exportJobDetail.schema>;

export const deletionJobDetail = component(
  'DeletionJobDetail',
  Type.Object(
    {
      ...listItemFields,
      type: typeOf(deletionTypes),
      completed_rows: count('Ids done so far.'),
      progress,
      counts: Type.Object(
        {
          requested: count('Different ids that were given.'),
          deleted: count('Of these there was something, and it is gone.'),
          not_found: count('Of these there was nothing.'),
        },
        { additionalProperties: false, description: 'Ids. Once completed, requested = deleted + not_found.' },
      ),
      removed: Type.Object(
        {
          events: count('Events of the users; of companies, events from which the company was taken.'),
          rejects: count('Refused records that held one of the ids.'),
          files: count('Files kept of loads that were accepted before.'),
          exports: count('Exports whose files were removed (`purge_exports`).'),
        },
        { additionalProperties: false, description: 'What else went, so far.' },
      ),
      purge_exports: Type.Boolean({ description: 'Files of exports that may hold the ids are removed too.' }),
      outcomes: Type.Object(
        {
          links: Type.String({
            format: 'uri',
            description: 'Where the outcome of each id is.',
            examples: [`${exampleJobUrl}/outcomes`],
          }),
        },
        { additionalProperties: false, description: 'What became of each id.' },
      ),
      failure: orNull(failure),
      last_error: lastError,
      attempts: count('How often it was begun.'),
      queue_position: queuePosition,
    },
    { additionalProperties: false, description: 'A deletion, as background jobs are shown.' },
  ),
);
type DeletionJobDetail = Static<typeof deletionJobDetail.schema>;

const showJobSchema = {
  operationId: 'showJob',
  summary: 'Show a background job',
  description: 'The job with its progress, its counts and, if it failed, why.',
  tags: ['jobs'],
  params: jobParameters,
  response: {
    200: {
      description: 'The job.',
      content: {
        'application/json': {
          schema: Type.Union([jobDetail.ref, exportJobDetail.ref, deletionJobDetail.ref]),
        },
      },
    },
    ...jobRefusals(),
  },
} satisfies FastifySchema;

export function showJob(app: FastifyInstance, system: System): void {
  const options = { config: { scope: 'read' }, schema: showJobSchema } as const;
  app.get('/v1/background_jobs/:job_id', options, async (request, reply) => {
    const jobId = jobIdOf(request);
    const environment = environmentId(request);
    const job = await requireJob(system.reader, environment, jobId);
    const base = baseUrl(request, system.config.publicUrl);
    const detail: JobDetail | ExportJobDetail | DeletionJobDetail = await renderJobDetail(
      system.reader,
      environment,
      job,
      base,
    );
    return reply.send(detail);
  });
}
