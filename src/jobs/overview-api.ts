import { type Static, Type } from 'typebox';
import { RATE_STEPS, SHOWN_FAILING_TASKS, SHOWN_JOB_DAYS, SHOWN_LANE_JOBS } from '../base/limits.ts';
import { loadStatuses } from '../domain/load.ts';
import { type NeedKind, needKinds } from '../domain/need.ts';
import { jobFields } from '../http/job.ts';
import {
  choice,
  count,
  defineRecord,
  flag,
  item,
  items,
  listOf,
  object,
  ordinal,
  orNull,
  text,
  time,
  uuid,
} from '../http/schema.ts';

const part = (description: string) => choice(['ok', 'away'], description);

const finding = item({
  check: text('Name of the check.', 'disk'),
  status: choice(
    ['ok', 'warning', 'failed'],
    '`warning`: it works, but needs attention. `failed`: it does not work, or will soon stop working.',
  ),
  found: text('The result, as a sentence.', '84 GB free of 120 GB'),
  advice: orNull(text('Recommended action. Null if there is none.'), null),
});

const rate = item({
  begins_at: time('Start of the step.'),
  accepted: count('Number of records that were stored, from files and one by one.'),
  unchanged: count('Number of records of files that changed nothing.'),
  rejected: count('Number of records that were refused. A batch refused as a whole counts once.'),
});

const jobDay = item({
  day: text('The day, in UTC.', '2026-11-20'),
  jobs: count('Number of jobs accepted on that day.'),
  failed: count('Number of these jobs that failed.'),
});

const laneItem = item({
  position: count('Position in the lane. 0 is running.'),
  job_id: jobFields.job_id,
  type: jobFields.type,
  status: choice(loadStatuses, '`queued` or `processing`.'),
  filename: orNull(text('For a load, the name of its file.', 'users.csv')),
  done: count('Records read so far; for a deletion, IDs done so far.'),
  total: count('Total number of records or IDs.'),
  start_time: jobFields.start_time,
});

const failingTask = item({
  task: text('Kind of task.', 'chunk'),
  job_id: orNull(uuid('The job. Null if the task belongs to none.')),
  part: count('Number of the chunk.'),
  failures: count('Failures since the task last made progress.'),
  losses: count('Workers that vanished with the task since then.'),
  last_error: orNull(text('Error of the last attempt.')),
  next_try_at: orNull(time('Time of the next attempt. Null while one is under way.')),
});

const queueState = item({
  lives_in: choice(['postgres', 'redis'], 'Where the queue is stored.'),
  is_known: flag('False if the queue does not answer.'),
  queues: items('The queues.', {
    name: text('Name of the queue.', 'sluice'),
    waiting: count('Notices that no worker has taken yet.'),
    active: count('Notices that a worker has taken.'),
    delayed: count('Notices that wait for a time. sluice delays none.'),
    failed: count('Notices that failed. The queue is notified of their tasks again.'),
  }),
});

const need = item({
  kind: choice(Object.keys(needKinds) as NeedKind[], 'Kind of problem, for programs.', 'schedules_failing'),
  status: choice(
    ['failed', 'warning'],
    '`failed`: something does not work. `warning`: everything works, but something is left to do.',
  ),
  count: ordinal('Number of records, schedules, jobs, files, deliveries or runs.'),
  subject: orNull(text('The job or schedule, if the problem concerns exactly one.', 'crm-users')),
  since: orNull(time('When the problem began, if known.')),
  says: text(
    'The problem as a sentence without a full stop.',
    'Schedule crm-users has failed for 25 minutes: crm.example.com cannot be reached',
  ),
});

const work = object('Background tasks of the environment, from the ledger.', {
  waiting: count('Tasks that a worker may take.'),
  running: count('Tasks that a worker has taken.'),
  postponed: count('Tasks that will be tried again later.'),
  failing: listOf(
    `Tasks that failed or lost their worker since they last made progress: the first ${SHOWN_FAILING_TASKS}.`,
    failingTask,
  ),
});

export const overview = defineRecord('Overview', 'The state of an environment.', {
  server: text('Host and process ID of the server that answers.', 'sluice-1 4711'),
  health: object('Health of the service.', {
    status: choice(['ready', 'degraded', 'not_ready'], 'Status, as in `/health/ready`.'),
    parts: object('The parts that the service depends on.', {
      database: part('The database.'),
      queue: part('The queue.'),
      storage: part('The file storage.'),
    }),
  }),
  findings: object('Findings of `sluice status` on this server, at most five minutes old.', {
    warnings: count('Number of checks with a warning.'),
    failed: count('Number of checks that failed.'),
    items: listOf(
      'Results of the checks. Shown to keys of the environment `default` and to administrators; empty for others.',
      finding,
    ),
    is_known: flag('False until the first checks have ended; ask again.'),
  }),
  needs: listOf(
    'Problems that need attention, failures first, as in `sluice status`. Empty if there are none.',
    need,
  ),
  rates: listOf(`Records of the period by outcome, in ${RATE_STEPS} steps, oldest first.`, rate),
  rate_minutes: count('Length of a step of `rates`, in minutes.', 1),
  job_days: listOf(`Jobs of the last ${SHOWN_JOB_DAYS} days, oldest first.`, jobDay),
  queued: count('Number of queued jobs.'),
  processing: count('Number of running jobs.'),
  failed_24h: count('Number of jobs that failed in the last 24 hours.'),
  unaccounted: count(
    'Records that the ledger lost or counted twice, over all loads that are kept. Records read are compared with their outcomes; in completed loads also with the records received; in the newest 200 loads also with their chunks. Must be 0.',
  ),
  work,
  queue: Type.Union([queueState, Type.Null()], {
    description:
      'The queue of the server, which only announces that work is due. Null in environments other than `default`, except for administrators.',
  }),
  lane: listOf(
    `Loads and deletions in the order in which they take effect: the first ${SHOWN_LANE_JOBS}.`,
    laneItem,
  ),
});
export type Overview = Static<typeof overview.schema>;
