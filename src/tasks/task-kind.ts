// All background work uses this engine. A transaction that needs work inserts a row into
// `sluice.tasks` and then notifies the queue. A job in the queue only reports that some work is
// due. The worker that gets the job claims the task whose turn it is (`runNextTask`). `runTask`
// renews the lease and handles the outcome of the task. `reconcile.ts` repairs losses. The kinds of
// the core are defined in the folder jobs/.
// Guarantees: only one worker owns a task at a time, by the database's clock. The fence rolls back
// late writes. A due task is never forgotten.
import type { Logger } from 'pino';
import type { DueTask, TaskClaim, TaskFailure, TaskKindName } from '../domain/task.ts';
import type { Database } from '../postgres/database.ts';

export interface TaskContext {
  readonly db: Database;
  readonly queue: TaskQueue;
  readonly log: Logger;
}

/** Notifies workers. A lost notice only delays work, because the reconciler repeats the notice. */
export interface TaskQueue {
  /**
   * With `again`, the tasks have already been notified, but their workers seem dead. In that case,
   * adds another job for each task, at most once in several seconds.
   */
  notify(tasks: readonly DueTask[], again?: boolean): Promise<void>;
}

export interface Tolerance {
  /**
   * If the last error is transient, such as a lost connection, the task fails when it has this
   * number of errors. Infinity: transient errors are retried forever and not counted.
   */
  readonly transient: number;
  /**
   * The same limit if the last error is a timeout of the server. It is separate, because the same
   * work will probably time out again.
   */
  readonly timeout: number;
  readonly defect: number;
}

/** `Context` is the part of the system that the work needs. */
export interface TaskKind<Context> {
  readonly name: TaskKindName;
  readonly label?: (task: TaskClaim) => string;
  /** When a stopping worker releases the task: immediately, or at the shutdown deadline. */
  readonly stops: 'at once' | 'at the deadline';
  readonly tolerance: Tolerance;
  /**
   * Number of workers that the task can lose in a row. Then the task is considered the cause, and
   * fails.
   */
  readonly maxLosses: number;
  /**
   * Maximum number of these tasks that a worker runs at a time outside the queue (`Runner`). If
   * missing, jobs of the queue run the tasks.
   */
  readonly maxOutsideQueue?: number;
  /** True if only workers of a service run the task. Workers started by a command do not run it. */
  readonly isOfService?: true;
  /** Maximum number of running tasks per group (`group_id`). Default: no limit. */
  readonly maxOfGroup?: number;
  /**
   * Returns the pause in milliseconds before the next attempt. `failures` is the number of errors
   * since the task last made progress.
   */
  readonly pauseMs: (failures: number) => number;
  /**
   * Does the work. The last statement must be the fence (`endTask`).
   * @throws FinalFailure if a retry would not help, ConflictError if the claim no longer owns the
   * task
   */
  readonly run: (context: Context, claim: TaskClaim, signal: AbortSignal) => Promise<void>;
  /**
   * Called when the task has failed permanently. Ends the job or other subject of the task, with
   * all its tasks, unless the subject has already ended.
   */
  readonly fail: (context: Context, task: TaskClaim, failure: TaskFailure) => Promise<void>;
  /**
   * Repairs what belongs to this kind but is not stored as a task, such as idle lanes. Several
   * processes may call it concurrently and repeatedly.
   */
  readonly reconcile?: (context: Context) => Promise<void>;
}

/** Notifies the queue. A failure is only logged, because the reconciler repeats the notice. */
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
