import { growing } from '../base/retry.ts';
import { SYSTEM_ENVIRONMENT_ID, type TaskKindName } from '../domain/task.ts';
import { insertTask } from './store.ts';
import { notifyQueue, type TaskContext } from './task-kind.ts';

const minuteMs = 60 * 1000;
export const dayMs = 24 * 60 * minuteMs;

/** Periodic tasks must not fail permanently. */
const endless = 1_000_000;

/** Shared members of periodic kinds. Each kind has one task, which all workers share. */
export const periodic = {
  tolerance: { transient: endless, timeout: endless, defect: endless },
  maxLosses: endless,
  pauseMs: growing(2 * minuteMs, dayMs),
  fail: async () => undefined,
};

/** Does nothing if the task exists. */
export async function queuePeriodic(context: TaskContext, kind: TaskKindName): Promise<void> {
  const task = await insertTask(context.db, {
    kind,
    subjectId: 0,
    part: 0,
    environmentId: SYSTEM_ENVIRONMENT_ID,
    jobId: null,
    requestId: null,
  });
  if (task !== null) await notifyQueue(context, [task]);
}
