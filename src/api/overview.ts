import { type Static, Type } from 'typebox';
import { SHOWN_FAILING_TASKS, SHOWN_LANE_JOBS } from '../domain/limits.ts';
import { loadStatuses } from '../domain/load.ts';
import { type NeedKind, needKinds } from '../domain/need.ts';
import { jobFields } from './job.ts';
import { closed, component, count, orNull } from './schema.ts';

const part = (name: string) => Type.Enum(['ok', 'away'], { type: 'string', description: `The ${name}.` });

const finding = Type.Object(
  {
    check: Type.String({ description: 'What was looked at.', examples: ['disk'] }),
    status: Type.Enum(['ok', 'warning', 'failed'], {
      type: 'string',
      description:
        '`warning`: it works, and somebody should know. `failed`: it does not, or will not for long.',
    }),
    found: Type.String({ description: 'A sentence for a person.', examples: ['84 GB free of 120 GB'] }),
    advice: orNull(Type.String({ description: 'What to do; null: nothing.', examples: [null] })),
  },
  closed,
);

export const minute = Type.Object(
  {
    minute: Type.String({ format: 'date-time', description: 'Its beginning.' }),
    records: count('Single records and items of batches that were committed.'),
    refused: count('Those that were not taken; a batch that was refused as a whole is one.'),
    rows: count('Records of files whose chunks were committed.'),
  },
  closed,
);

export const laneItem = Type.Object(
  {
    position: count('Its place in the lane; 0 runs.'),
    job_id: jobFields.job_id,
    type: jobFields.type,
    status: Type.Enum([...loadStatuses], { type: 'string', description: '`queued` or `processing`.' }),
    filename: orNull(Type.String({ description: 'Of a load.', examples: ['users.csv'] })),
    done: count('Records read so far; of a deletion, ids done.'),
    total: count('Of them all.'),
    start_time: jobFields.start_time,
  },
  closed,
);

const failingTask = Type.Object(
  {
    task: Type.String({ description: 'What is to be done.', examples: ['chunk'] }),
    job_id: orNull(Type.String({ format: 'uuid', description: 'For which job; null: for none.' })),
    part: count('The number of a chunk.'),
    failures: count('How often it failed since it last got on.'),
    losses: count('Workers that vanished with it since.'),
    last_error: orNull(Type.String({ description: 'What the last try ran into.' })),
    next_try_at: orNull(
      Type.String({ format: 'date-time', description: 'When it is tried again; null: it is under way.' }),
    ),
  },
  closed,
);

export const queueState = Type.Object(
  {
    lives_in: Type.Enum(['postgres', 'redis'], { type: 'string', description: 'Where the queue lives.' }),
    is_known: Type.Boolean({ description: 'False: the queue does not answer.' }),
    queues: Type.Array(
      Type.Object(
        {
          name: Type.String({ description: 'Its name.', examples: ['sluice'] }),
          waiting: count('Notices that nobody has taken yet.'),
          active: count('Those that a worker has taken.'),
          delayed: count('Those that wait for their time. sluice delays none.'),
          failed: count('Those that failed. They leave no trace: the task is notified of again.'),
        },
        closed,
      ),
      { description: 'Each queue.' },
    ),
  },
  closed,
);

const need = Type.Object(
  {
    kind: Type.Enum(Object.keys(needKinds) as NeedKind[], {
      type: 'string',
      description: 'The kind of problem, for programs.',
      examples: ['schedules_failing'],
    }),
    status: Type.Enum(['failed', 'warning'], {
      type: 'string',
      description:
        '`failed`: something does not work. `warning`: everything works, but something is left to do.',
    }),
    count: Type.Integer({
      minimum: 1,
      description: 'Number of records, schedules, jobs, files, deliveries or runs.',
    }),
    subject: orNull(
      Type.String({
        description: 'The job or schedule, if the problem concerns exactly one.',
        examples: ['crm-users'],
      }),
    ),
    since: orNull(Type.String({ format: 'date-time', description: 'When the problem began, if known.' })),
    says: Type.String({
      description: 'The problem as a sentence without a full stop.',
      examples: ['Schedule crm-users has failed for 25 minutes: crm.example.com cannot be reached'],
    }),
  },
  closed,
);

export const work = Type.Object(
  {
    waiting: count('Tasks that a worker may take.'),
    running: count('Tasks that a worker has taken.'),
    postponed: count('Tasks that are tried again later.'),
    failing: Type.Array(failingTask, {
      description: `Those that failed or lost their worker since they last got on; the first ${SHOWN_FAILING_TASKS}.`,
    }),
  },
  { ...closed, description: 'Background work of the environment: what is to be done, by the ledger.' },
);

export const overview = component(
  'Overview',
  Type.Object(
    {
      server: Type.String({
        description: 'Host and process id of the server that answers.',
        examples: ['sluice-1 4711'],
      }),
      health: Type.Object(
        {
          status: Type.Enum(['ready', 'degraded', 'not_ready'], {
            type: 'string',
            description: 'As `/health/ready`.',
          }),
          parts: Type.Object(
            { database: part('database'), queue: part('queue'), storage: part('storage') },
            { ...closed, description: 'What the service stands on.' },
          ),
        },
        { ...closed, description: 'Whether it is ready.' },
      ),
      findings: Type.Object(
        {
          warnings: count('Checks that found something somebody should know.'),
          failed: count('Checks that found something broken.'),
          items: Type.Array(finding, {
            description: `What they found, for keys of the environment \`default\` and for who signed in with ADMIN_KEY; to others the server is none of their business.`,
          }),
          is_known: Type.Boolean({ description: 'False: the checks have not ended yet; ask again.' }),
        },
        { ...closed, description: 'What `sluice doctor` finds on this server, at most five minutes ago.' },
      ),
      needs: Type.Array(need, {
        description:
          'What needs attention, failures first; `sluice status` shows the same. Empty if nothing does.',
      }),
      minutes: Type.Array(minute, { description: 'The last hour by the minute, oldest first.' }),
      queued: count('Jobs that wait.'),
      processing: count('Jobs that run.'),
      failed_24h: count('Jobs that failed in the last 24 hours.'),
      unaccounted: count(
        'Records that the ledger lost or counted twice, of all loads that are kept: read against their outcomes, completed loads also against what was received, the newest 200 also against their chunks. Must be 0.',
      ),
      work,
      queue: Type.Union([queueState, Type.Null()], {
        description:
          'The queue of the server, which only says that work is due. Null for other environments than `default`, but for administrators.',
      }),
      lane: Type.Array(laneItem, {
        description: `Loads and deletions in the order in which they take effect; the first ${SHOWN_LANE_JOBS}.`,
      }),
    },
    { ...closed, description: 'What an environment is at.' },
  ),
);
export type Overview = Static<typeof overview.schema>;
