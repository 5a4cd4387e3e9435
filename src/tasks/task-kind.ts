// The engine of all background work. A transaction that needs work inserts into `sluice.tasks` and
// notifies the queue, whose jobs only say that work is due. A worker claims the task whose turn it
// is (`runNextTask`). `runTask` renews the lease and handles the outcome, and `reconcile.ts`
// repairs losses. The core's kinds are in jobs/. Guarantees: one worker owns a task at a time, by
// the database's clock. The fence rolls back late writes. A due task is never forgotten.

import type { Logger } from 'pino';
import { growing } from '../base/retry.ts';
import {
  type DueTask,
  SYSTEM_ENVIRONMENT_ID,
  type TaskClaim,
  type TaskFailure,
  type TaskKindName,
} from '../domain/task.ts';
import type { Database } from '../postgres/database.ts';
import { insertTask } from './store.ts';

export interface TaskContext {
  readonly db: Database;
  readonly queue: TaskQueue;
  readonly log: Logger;
}

/** A lost notice only delays work, because the reconciler repeats it. */
export interface TaskQueue {
  /**
   * If `again` is true, the workers of the tasks seem dead. Each task then gets another job, at
   * most once in several seconds.
   */
  notify(tasks: readonly DueTask[], again?: boolean): Promise<void>;
}

export interface Tolerance {
  /**
   * Number of errors after which the task fails, provided that the last error is transient, such as
   * a lost connection. With Infinity, such errors are retried forever and not counted.
   */
  readonly transient: number;
  /**
   * Number of errors after which the task fails, provided that the last error is a server timeout.
   * The same work will probably reach the timeout again.
   */
  readonly timeout: number;
  readonly defect: number;
}

/** `Context` is the part of the system that the work needs. */
export interface TaskKind<Context> {
  readonly name: TaskKindName;
  readonly label?: (task: TaskClaim) => string;
  /** Whether a stopping worker releases the task immediately, or at the shutdown deadline. */
  readonly stops: 'at once' | 'at the deadline';
  readonly tolerance: Tolerance;
  /**
   * If this many workers in a row die while they run the same task, the task counts as the cause
   * and fails.
   */
  readonly maxLosses: number;
  /**
   * Maximum number of tasks that a worker runs at a time outside the queue (`Runner`). Default:
   * jobs of the queue run them.
   */
  readonly maxOutsideQueue?: number;
  /** True if workers that a command starts must not run these tasks. */
  readonly isOfService?: true;
  /** Maximum number of running tasks per `group_id`. Default: no limit. */
  readonly maxOfGroup?: number;
  /** Milliseconds before the next attempt. `failures` counts errors since the last progress. */
  readonly pauseMs: (failures: number) => number;
  /**
   * The last statement must be the fence (`endTask`).
   * @throws FinalFailure if a retry would not help, LostClaim if the claim no longer owns the task
   */
  readonly run: (context: Context, claim: TaskClaim, signal: AbortSignal) => Promise<void>;
  /**
   * Called after a permanent failure. Ends the task's job or other subject, with all its tasks,
   * unless the subject has already ended.
   */
  readonly fail: (context: Context, task: TaskClaim, failure: TaskFailure) => Promise<void>;
  /** Repairs what is not stored as a task, such as idle lanes. Several processes may call it. */
  readonly reconcile?: (context: Context) => Promise<void>;
}

/** Only logs a failure, because the reconciler repeats the notice. */
export async function notifyQueue(
  { queue, log }: Pick<TaskContext, 'queue' | 'log'>,
  tasks: readonly DueTask[],
  again = false,
): Promise<void> {
  if (tasks.length === 0) return;
  try {
    await queue.notify(tasks, again);
  } catch (error) {
    log.warn({ err: error }, 'the queue is away; the reconciler will notify it again');
  }
}

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
