import { type Static, Type } from 'typebox';
import { MAX_COUNTED_REJECTS } from '../../base/limits.ts';
import { exampleJobUrl, failure, origin } from '../../http/job.ts';
import {
  runFields as documentFields,
  exportCounts,
  rejectsByCode,
  rejectsFields,
  tally,
} from '../../http/run.ts';
import {
  anyObject,
  choice,
  count,
  defineRecord,
  flag,
  item,
  listOf,
  object,
  orNull,
  text,
  time,
  url,
  uuid,
} from '../../http/schema.ts';
import { tallyByKind } from '../../load/api.ts';

export const SHOWN_RUNS = 14;
export const NEXT_DUE_TIMES = 5;
export const MAX_TOLD_ITEMS = 100;

/** The comment on the table sluice.schedule_runs explains the statuses. */
const runStatuses = [
  ...(['queued', 'running', 'waiting', 'held'] as const),
  ...(['completed', 'completed_with_rejects', 'unchanged', 'skipped', 'failed'] as const),
];
export type RunStatus = (typeof runStatuses)[number];

const at = (description: string) => time(description, '2026-11-20T02:00:00.000Z');

const status = choice(
  runStatuses,
  'Status: queued → running → waiting for its jobs → ended. `held`: one of its loads waits for a person.',
  'completed',
);

const runFields = {
  due_at: at('The due time of the run.'),
  cause: choice(
    ['due', 'made_up', 'asked'],
    '`due`: the clock. `made_up`: a due time that was missed. `asked`: a person.',
  ),
  missed: count('Number of earlier due times that the run stands for too.'),
  held_job: orNull(uuid('The load that waits for a person. Null if none does.'), null),
  last_error: orNull(text('Error of the last attempt, if another follows.'), null),
};

const failed = orNull({ ...failure, description: 'Why the run failed or was skipped. Null unless it was.' });

const shortRun = item({
  ...runFields,
  status,
  started_at: orNull(at('When the run began.')),
  ended_at: orNull(at('When the run ended.')),
  failure: failed,
});

export const scheduleItem = defineRecord('Schedule', 'A schedule, with its due times and latest runs.', {
  schedule: text('Name of the schedule.', 'nightly-users'),
  definition: anyObject('The schedule as the API takes it, with defaults.'),
  kind: choice(['load', 'export'], 'Kind of job that a run starts.'),
  what: text('Source of a load or content of an export, without secrets.', 'files /data/users-*.csv'),
  cron: text('Cron expression.', '0 2 * * *'),
  time_zone: text('Time zone of the cron expression.', 'Europe/Berlin'),
  enabled: flag('True if the schedule is enabled.'),
  paused_at: orNull(at('When it was paused. Null if it is not paused.'), null),
  missed: choice(['run_once', 'run_all', 'skip'], 'Treatment of due times that were missed.'),
  overlap: choice(['skip', 'wait'], 'Treatment of a run that is due before the previous one has ended.'),
  next_due: orNull(at('Next due time. Null if the schedule is disabled or paused.')),
  next_times: listOf(`The next ${NEXT_DUE_TIMES} due times.`, at('A due time.'), {
    maxItems: NEXT_DUE_TIMES,
  }),
  runs: listOf(`The latest ${SHOWN_RUNS} runs, latest due time first.`, shortRun, {
    maxItems: SHOWN_RUNS,
  }),
});
export type Schedule = Static<typeof scheduleItem.schema>;

export const scheduleList = defineRecord('ScheduleList', 'The schedules of the environment.', {
  data: listOf('The schedules, by name.', scheduleItem.ref),
});
export type ScheduleList = Static<typeof scheduleList.schema>;

const jobRejects = item({
  job_id: uuid('The load.'),
  count: count('Number of its refused records.', 1),
  links: url('URL of its refused records.', `${exampleJobUrl}/rejects`),
});

const jobStatus = text(
  'Status of the job. Null if there is no job, or no record of it any more.',
  'completed',
);

export const scheduleRun = defineRecord('ScheduleRun', 'The document of a run of a schedule.', {
  ...documentFields,
  job_id: orNull(uuid('Null: a run is not a job. Its jobs are in `items`.'), null),
  type: choice(['schedule'], 'What ran.'),
  status,
  origin: { ...origin('The schedule.'), examples: [{ kind: 'schedule', name: 'nightly-users' }] },
  request_id: { ...documentFields.request_id, examples: [null] },
  sources: {
    ...documentFields.sources,
    maxItems: MAX_TOLD_ITEMS,
    description: `Files of the first ${MAX_TOLD_ITEMS} loads that the run created.`,
  },
  files: { ...documentFields.files, examples: [[]] },
  options: {
    ...documentFields.options,
    description: 'Options of the load or export. The source is left out.',
  },
  counts: Type.Union([tally.ref, exportCounts], {
    description: 'Sum of the counts of the jobs that the run created.',
  }),
  rejects: object('The refused records of these jobs.', {
    ...rejectsFields,
    by_code: rejectsByCode(
      `Refused records by code, most frequent first. At most ${MAX_COUNTED_REJECTS} are counted.`,
      { missing_id: 1 },
    ),
    jobs: listOf('The loads that have them.', jobRejects, { maxItems: MAX_TOLD_ITEMS }),
  }),
  failure: failed,
  cursor: { ...documentFields.cursor, examples: [null] },
  schedule: text('Name of the schedule.', 'nightly-users'),
  environment: text('Name of the environment.', 'default'),
  ...runFields,
  attempts: count('Number of attempts begun.'),
  counts_by_kind: orNull(tallyByKind),
  range_from: orNull(at('Start of the range, for an export that has one.'), null),
  range_to: orNull(at('End of the range, for an export that has one.'), null),
  delivered_to: orNull(text('Folder that the files were copied to.'), null),
  items: listOf(
    'Items of the run, each with its job.',
    item({
      item: text('A file, an object or an address; or `export`.', '/data/users-1.csv'),
      job_id: orNull(uuid('The job. Null if the item was refused.')),
      status: orNull(jobStatus),
      is_new: flag('False if this job had already loaded the same bytes.'),
      error_code: orNull(text('Why the item was refused.'), null),
      message: orNull(text('The same, as a sentence.'), null),
      links: orNull(url('URL of the job.', exampleJobUrl)),
    }),
    { maxItems: MAX_TOLD_ITEMS },
  ),
  item_count: count('Number of items, including those that are not shown.'),
});
export type ScheduleRun = Static<typeof scheduleRun.schema>;
