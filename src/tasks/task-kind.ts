// The one engine of background work. The transaction that needs work adds a row to `sluice.tasks`,
// then notifies the queue. A queue job only reports that work is due: its worker runs the next task
// in turn (`runNextTask`). `runTask` claims, renews the lease and returns the task by its outcome.
// `reconcile.ts` repairs losses. `jobs/<kind>.ts` has each `TaskKind`.
// Guarantees: one worker owns a task, by the database's clock. The fence rolls back late writes. No
// due task is forgotten.
import type { Logger } from 'pino';
import type { DueTask, TaskClaim, TaskFailure, TaskKindName } from '../domain/task.ts';
import type { Database } from '../postgres/database.ts';

export interface TaskContext {
  readonly db: Database;
  readonly queue: TaskQueue;
  readonly log: Logger;
}

/** Notifies workers. A lost notice only delays, because the reconciler repeats it. */
export interface TaskQueue {
  /** `again` also repeats a job whose worker seems dead, at most once in some seconds. */
  notify(tasks: readonly DueTask[], again?: boolean): Promise<void>;
}

export interface Tolerance {
  /**
   * Passing errors, such as a lost connection. Infinity for endless retries that are not counted.
   */
  readonly transient: number;
  /** Server timeouts, which a repetition of the work meets again. */
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
  /** Number of vanished workers in a row after which the task counts as their cause. */
  readonly maxLosses: number;
  /** Number of tasks at a time per worker, beside the queue. Default: each task is a queue job. */
  readonly beside?: number;
  /** True if only workers of a service run it, not workers of a command. */
  readonly isOfService?: true;
  /** Number of running tasks per group (`group_id`). Default: unlimited. */
  readonly maxOfGroup?: number;
  /** Pause in milliseconds after an error. `failures` counts since the last progress. */
  readonly pauseMs: (failures: number) => number;
  /**
   * Does the work and ends with the fence (`endTask`).
   * @throws ConflictError if the task is lost, FinalFailure
   */
  readonly run: (context: Context, claim: TaskClaim, signal: AbortSignal) => Promise<void>;
  /** Ends the subject and its tasks after the last failure, unless it has ended. */
  readonly fail: (context: Context, task: TaskClaim, failure: TaskFailure) => Promise<void>;
  /** Repairs other work. May run anywhere, at any time, twice. */
  readonly reconcile?: (context: Context) => Promise<void>;
}

/** Notifies the queue. Ignores an unavailable queue, because the reconciler repeats the notice. */
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
