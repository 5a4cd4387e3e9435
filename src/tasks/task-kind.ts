// The only engine of background work. A transaction that needs work inserts a row into
// `sluice.tasks` and then notifies the queue. A queue job only reports that some work is due: its
// worker runs the task whose turn it is (`runNextTask`). `runTask` claims the task, renews its
// lease and handles its outcome. `reconcile.ts` repairs losses. Each `TaskKind` is in
// `jobs/<kind>.ts`.
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
   * With `again`, also adds a new job for a task whose worker seems dead, but at most once in
   * several seconds.
   */
  notify(tasks: readonly DueTask[], again?: boolean): Promise<void>;
}

export interface Tolerance {
  /**
   * Number of errors at which the task fails if the last one is transient, such as a lost
   * connection. Infinity: transient errors are retried forever and not counted.
   */
  readonly transient: number;
  /** Same for server timeouts. Repeating the same work will probably cause the same timeout. */
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
  /** Number of consecutive lost workers after which the task is blamed. */
  readonly maxLosses: number;
  /**
   * Maximum number of these tasks that a worker runs at a time, bypassing the queue. Default: a
   * queue job runs the task.
   */
  readonly beside?: number;
  /** True if only workers of a service run the task. Workers started by a command do not run it. */
  readonly isOfService?: true;
  /** Maximum number of running tasks per group (`group_id`). Default: no limit. */
  readonly maxOfGroup?: number;
  /**
   * Pause in milliseconds after an error. `failures` is the number of errors since the last
   * progress.
   */
  readonly pauseMs: (failures: number) => number;
  /**
   * Does the work. The last statement must be the fence (`endTask`).
   * @throws FinalFailure if a retry would not help, ConflictError if the claim no longer owns the
   * task
   */
  readonly run: (context: Context, claim: TaskClaim, signal: AbortSignal) => Promise<void>;
  /**
   * Called after the last failure. Ends the subject and its tasks, unless the subject has already
   * ended.
   */
  readonly fail: (context: Context, task: TaskClaim, failure: TaskFailure) => Promise<void>;
  /**
   * Repairs what is not a task, such as idle lanes. Several processes may call it concurrently and
   * repeatedly.
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
