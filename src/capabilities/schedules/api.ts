import type { Static } from 'typebox';
import {
  anyObject,
  choice,
  count,
  defineRecord,
  flag,
  item,
  listOf,
  orNull,
  text,
  time,
  uuid,
} from '../../http/schema.ts';

export const SHOWN_RUNS = 14;
export const NEXT_DUE_TIMES = 5;
export const MAX_TOLD_ITEMS = 100;

/** Statuses of a run. The comment on sluice.schedule_runs explains them. */
const runStatuses = [
  ...(['queued', 'running', 'waiting', 'held'] as const),
  ...(['completed', 'completed_with_rejects', 'unchanged', 'skipped', 'failed'] as const),
];
export type RunStatus = (typeof runStatuses)[number];

const at = (description: string) => time(description, '2026-11-20T02:00:00.000Z');

const runFields = {
  due_at: at('The due time of the run.'),
  status: choice(
    runStatuses,
    'Status: queued → running → waiting for its jobs → ended. `held`: one of its loads waits for a person.',
    'completed',
  ),
  cause: choice(
    ['due', 'made_up', 'asked'],
    '`due`: the clock. `made_up`: a due time that was missed. `asked`: a person.',
  ),
  missed: count('Number of earlier due times that the run stands for too.'),
  started_at: orNull(at('When the run began.')),
  ended_at: orNull(at('When the run ended.')),
  error_code: orNull(text('Why the run failed or was skipped.'), null),
  message: orNull(text('The same, as a sentence.'), null),
  last_error: orNull(text('Error of the last attempt, if another follows.'), null),
};

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
  runs: listOf(`The latest ${SHOWN_RUNS} runs, latest due time first.`, item(runFields), {
    maxItems: SHOWN_RUNS,
  }),
});
export type Schedule = Static<typeof scheduleItem.schema>;

export const scheduleList = defineRecord('ScheduleList', 'The schedules of the environment.', {
  data: listOf('The schedules, by name.', scheduleItem.ref),
});
export type ScheduleList = Static<typeof scheduleList.schema>;

export const scheduleRun = defineRecord('ScheduleRun', 'A run of a schedule.', {
  schedule: text('Name of the schedule.', 'nightly-users'),
  environment: text('Name of the environment.', 'default'),
  ...runFields,
  attempts: count('Number of attempts begun.'),
  range_from: orNull(at('Start of the range, for an export that has one.'), null),
  range_to: orNull(at('End of the range, for an export that has one.'), null),
  delivered_to: orNull(text('Folder that the files were copied to.'), null),
  items: listOf(
    'Items of the run, each with its job.',
    item({
      item: text('A file, an object or an address; or `export`.', '/data/users-1.csv'),
      job_id: orNull(uuid('The job. Null if the item was refused.')),
      is_new: flag('False if this job had already loaded the same bytes.'),
      error_code: orNull(text('Why the item was refused.'), null),
      message: orNull(text('The same, as a sentence.'), null),
    }),
    { maxItems: MAX_TOLD_ITEMS },
  ),
  item_count: count('Number of items, including those that are not shown.'),
});
export type ScheduleRun = Static<typeof scheduleRun.schema>;
