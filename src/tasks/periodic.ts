import { growing } from '../base/retry.ts';
import { SYSTEM_ENVIRONMENT_ID, type TaskKindName } from '../domain/task.ts';
import { insertTask } from './store.ts';
import { notifyQueue, type TaskContext } from './task-kind.ts';

const minuteMs = 60 * 1000;
export const dayMs = 24 * 60 * minuteMs;

/** A limit that is never reached, because periodic tasks must not fail permanently. */
const endless = 1_000_000;

/**
 * Members of `TaskKind` that all kinds of periodic tasks have in common. Each kind has a single
 * task, which all workers share.
 */
export const periodic = {
  tolerance: { transient: endless, timeout: endless, defect: endless },
  maxLosses: endless,
  pauseMs: growing(2 * minuteMs, dayMs),
  fail: async () => undefined,
};

/** Adds the task if it is missing. */
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
