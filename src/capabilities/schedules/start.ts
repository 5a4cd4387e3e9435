import { RECONCILE_MS } from '../../base/limits.ts';
import { type Poller, startPoller } from '../../base/timers.ts';
import type { ActContext } from '../../postgres/acts.ts';
import { inTransaction } from '../../postgres/database.ts';
import { notifyQueue } from '../../tasks/task-kind.ts';
import type { ScheduleContext } from './context.ts';
import { dueTimes } from './due-times.ts';
import { endWaitingRuns } from './end-run.ts';
import { holdSchedule, noSchedule, readSchedules } from './keep.ts';
import { hasOpenRun, insertRun, type NewRun, queueRuns, requeueRun } from './run-store.ts';
import { hasSchedules, markConsidered } from './schedule-store.ts';
import { millisecondsOf, type RunDefinition, type Schedule } from './schema.ts';

/** Pause between polls while there are no schedules. */
const REST_MS = 3 * RECONCILE_MS;
const MISSED_AFTER_MS = 60_000;
const MAX_MADE_UP_RUNS = 100;

/** Several processes may run this poller at the same time. Calls `onQueued` for new tasks. */
export function startSchedules(context: ScheduleContext, onQueued: () => void): Poller {
  return startPoller(RECONCILE_MS, async () => {
    try {
      if (!(await hasSchedules(context.db))) return REST_MS;
      if (await seeToSchedules(context)) onQueued();
    } catch (error) {
      context.log.warn({ err: error }, 'looking after schedules failed; the next poll tries again');
    }
    return RECONCILE_MS;
  });
}

/** Returns true if it has queued tasks. */
async function seeToSchedules(context: ScheduleContext): Promise<boolean> {
  await endWaitingRuns(context).catch((error: unknown) =>
    context.log.warn({ err: error }, 'a run could not be ended; the next poll tries again'),
  );
  await makeDueRuns(context, await readSchedules(context.db, null));
  const tasks = await queueRuns(context.db);
  await notifyQueue(context, tasks);
  return tasks.length > 0;
}

/** Lag of `considered_until` behind the clock while no run is due. */
const considerAgainMs = 30_000;

/** Creates each run exactly once, however many processes call this. */
export async function makeDueRuns(context: ScheduleContext, schedules: readonly Schedule[]): Promise<number> {
  const now = context.schedules.now();
  let count = 0;
  for (const schedule of schedules) {
    const { environmentId, definition, until } = schedule;
    if (findDue(schedule, now).length > 0) count += await makeRuns(context, schedule, now);
    else if (now.getTime() - until.getTime() > considerAgainMs) {
      await markConsidered(context.db, environmentId, definition.name, now);
    }
  }
  return count;
}

function findDue({ definition, until, pausedAt }: Schedule, now: Date): number[] {
  const { cron, timezone, enabled, missed_within } = definition;
  if (!enabled || pausedAt !== null) return [];
  const after = Math.max(until.getTime(), now.getTime() - millisecondsOf(missed_within));
  return dueTimes(cron, timezone, after, now.getTime(), 10 * MAX_MADE_UP_RUNS);
}

async function makeRuns(
  context: ScheduleContext,
  { environmentId, definition: { name } }: Schedule,
  now: Date,
): Promise<number> {
  return inTransaction(context.pool, async ({ db }) => {
    // Another process may have changed or deleted the schedule.
    const schedule = await holdSchedule(db, environmentId, name);
    if (schedule === null) return 0;
    const due = findDue(schedule, now);
    const { overlap } = schedule.definition;
    const isBusy = overlap === 'skip' && (await hasOpenRun(db, environmentId, name));
    let count = 0;
    for (const run of planRuns(schedule, due, now)) {
      const skip = run.skip ?? (isBusy ? overlapping : null);
      const runId = await insertRun(db, environmentId, name, { ...run, skip });
      if (runId === null) continue;
      count++;
      const fields = { schedule: name, due_at: run.dueAt, cause: run.cause, missed: run.missed };
      context.log.info({ ...fields, skipped: skip?.code }, 'schedule is due');
    }
    await markConsidered(db, environmentId, name, now);
    return count;
  });
}

const overlapping = { code: 'overlap', reason: 'the run before it had not ended' };
const tooLate = { code: 'missed', reason: 'nobody was there when it was due' };

function planRuns(schedule: Schedule, due: readonly number[], now: Date): NewRun[] {
  const isMissed = (ms: number): boolean => now.getTime() - ms > MISSED_AFTER_MS;
  const missed = due.filter(isMissed);
  const onTime = due.filter((ms) => !isMissed(ms));
  const run = (ms: number, cause: NewRun['cause'], passed: number, skip: NewRun['skip']): NewRun => ({
    dueAt: new Date(ms),
    cause,
    missed: passed,
    skip,
    definition: definitionOf(schedule),
  });
  const last = missed.at(-1);
  const before = missed.length - 1;
  const regular = (passed: number): NewRun[] =>
    onTime.map((ms, index) => run(ms, 'due', index === 0 ? passed : 0, null));
  switch (schedule.definition.missed) {
    case 'run_all': {
      const madeUp = missed.slice(-MAX_MADE_UP_RUNS);
      const dropped = missed.length - madeUp.length;
      return [
        ...madeUp.map((ms, index) => run(ms, 'made_up', index === 0 ? dropped : 0, null)),
        ...regular(0),
      ];
    }
    case 'run_once':
      if (onTime.length > 0) return regular(missed.length);
      return last === undefined ? [] : [run(last, 'made_up', before, null)];
    case 'skip':
      return [...(last === undefined ? [] : [run(last, 'due', before, tooLate)]), ...regular(0)];
  }
}

function definitionOf({ definition, environment }: Schedule): RunDefinition {
  const { timezone, notify, load, export: exported } = definition;
  return {
    environment,
    timezone,
    ...(notify && { notify }),
    ...(load ? { load } : { export: exported ?? {} }),
  };
}

/**
 * `asked`: the run is new. `again`: a failed or skipped run for `dueAt` is repeated. `known`: the
 * run for `dueAt` is open or has succeeded.
 * @throws InputError `not_found`
 */
export async function askForRun(
  { db, acts }: ActContext,
  environmentId: number,
  name: string,
  dueAt: Date,
): Promise<'asked' | 'again' | 'known'> {
  return db.transaction().execute(async (transaction) => {
    const schedule = await holdSchedule(transaction, environmentId, name);
    if (schedule === null) throw noSchedule(name);
    const definition = definitionOf(schedule);
    const run = { dueAt, cause: 'asked', missed: 0, skip: null, definition } as const;
    const isNew = (await insertRun(transaction, environmentId, name, run)) !== null;
    if (!isNew && !(await requeueRun(transaction, environmentId, name, dueAt, definition))) return 'known';
    const details = { due_at: dueAt.toISOString() };
    await acts.record(transaction, { action: 'schedule.run', environmentId, thing: name, details });
    return isNew ? 'asked' : 'again';
  });
}
