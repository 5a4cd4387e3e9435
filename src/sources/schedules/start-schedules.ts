/*
 * Schedules: loads and exports by the clock. `schedules-file.ts` reads the operator's file, `make-due-
 * runs.ts` makes one run of each due time, whichever worker is first; a run is a task (`run.ts`) that reads
 * a source or asks for an export. Promise: a due time makes one run, and what a run has taken is not loaded
 * twice.
 */
import { RECONCILE_MS } from '../../domain/limits.ts';
import { queueRuns } from '../../postgres/stores/schedule-runs.ts';
import { startPoller } from '../../tasks/poller.ts';
import { notifyQueue } from '../../tasks/task-kind.ts';
import type { ScheduleContext } from './context.ts';
import { endWaitingRuns } from './end-run.ts';
import { makeDueRuns } from './make-due-runs.ts';
import type { SchedulesFile } from './schedules-file.ts';

export interface RunningSchedules {
  /** Waits for the poll under way, and begins no other. */
  stop(): Promise<void>;
}

/**
 * Sees to the schedules of a file: every RECONCILE_MS, what is due becomes a run, the next run of each schedule a task, and a run
 * whose jobs have ended ends. Harmless in any number of processes. `onQueued` is called when there are new tasks.
 */
export function startSchedules(
  context: ScheduleContext,
  file: SchedulesFile,
  onQueued: () => void,
): RunningSchedules {
  return startPoller(RECONCILE_MS, async () => {
    await file.refresh().catch(() => false);
    await seeToSchedules(context, file.schedules).then(
      (isQueued) => isQueued && onQueued(),
      (error: unknown) =>
        context.log.warn({ err: error }, 'looking after schedules failed; the next poll tries again'),
    );
  });
}

/** True: there are new tasks. */
async function seeToSchedules(
  context: ScheduleContext,
  schedules: SchedulesFile['schedules'],
): Promise<boolean> {
  await endWaitingRuns(context).catch((error: unknown) =>
    context.log.warn({ err: error }, 'a run could not be ended; the next poll tries again'),
  );
  await makeDueRuns(context, schedules);
  const tasks = await queueRuns(context.db);
  await notifyQueue(context, tasks);
  return tasks.length > 0;
}
