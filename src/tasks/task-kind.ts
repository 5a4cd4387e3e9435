// The one engine of background work. The transaction that needs work adds a row of `sluice.tasks`,
// then notifies the queue. A queue job only says that something is due: its taker runs the next
// task in turn (`runNextTask`). `runTask` claims, renews the lease and returns the task by its
// outcome. `reconcile.ts` repairs losses. `jobs/<kind>.ts` has each `TaskKind`. Guarantees: one
// worker owns a task, by the database's clock. The fence rolls back late writes. No due task is
// forgotten.
import type { Logger } from 'pino';
import type { DueTask, TaskClaim, TaskFailure, TaskKindName } from '../domain/task.ts';
import type { Database } from '../postgres/database.ts';

export interface TaskContext {
  readonly db: Database;
  readonly queue: TaskQueue;
  readonly log: Logger;
}

/** Notifies workers. A lost notice only delays, since the reconciler repeats it. */
export interface TaskQueue {
  /** `again` also repeats a job whose taker seems dead, at most once in some seconds. */
  notify(tasks: readonly DueTask[], again?: boolean): Promise<void>;
}

export interface Tolerance {
  /** Passing errors, such as a lost connection. Infinity: uncounted endless retries. */
  readonly transient: number;
  /** Server timeouts, which the same work meets again. */
  readonly timeout: number;
  readonly defect: number;
}

/** `Context` is what the work needs of the system. */
export interface TaskKind<Context> {
  readonly name: TaskKindName;
  readonly label?: (task: TaskClaim) => string;
  /** When a stopping worker releases the task: immediately, or at the shutdown deadline. */
  readonly stops: 'at once' | 'at the deadline';
  readonly tolerance: Tolerance;
  /** Vanished workers in a row before the task is their cause. */
  readonly maxLosses: number;
  /** Tasks at a time per worker beside the queue. Default: a queue job. */
  readonly beside?: number;
  /** Only for workers of a service, not of a command. */
  readonly isOfService?: true;
  /** Running tasks per group (`group_id`). Default: unlimited. */
  readonly maxOfGroup?: number;
  /** Pause after an error. `failures` counts since the last progress. */
  readonly pauseMs: (failures: number) => number;
  /** Ends with the fence (`endTask`). @throws ConflictError if the task is lost, FinalFailure */
  readonly run: (context: Context, claim: TaskClaim, signal: AbortSignal) => Promise<void>;
  /** Ends the subject, unless ended, and its tasks, after the last failure. */
  readonly fail: (context: Context, task: TaskClaim, failure: TaskFailure) => Promise<void>;
  /** Repairs other work. May run anywhere, at any time, twice. */
  readonly reconcile?: (context: Context) => Promise<void>;
}

/** Ignores an absent queue, since the reconciler repeats the notice. */
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
