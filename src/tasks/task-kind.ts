/*
 * The one engine of background work. A task is a row of `sluice.tasks` (src/tasks/store.ts), made by the transaction that
 * makes the work necessary. Then the queue is notified; a job of it carries the task's id and attempt, and says only that
 * something is due: whoever takes one does what is next in fair turns of the environments (`runNextTask`). `runTask` is the frame
 * of every kind: claim, renew the lease while it runs, and give the task back by what became of it. The reconciler
 * (`reconcile.ts`) makes up for whatever was lost: workers, notices, sessions. What is particular to a kind stands in
 * `jobs/<kind>.ts`, as a `TaskKind`.
 *
 * Promises: a task is owned by one worker at a time, on the database's clock; what a worker writes that lost its task is rolled back
 * by the fence; nothing that is due is forgotten, whatever dies.
 */
import type { Logger } from 'pino';
import type { DueTask, TaskClaim, TaskFailure, TaskKindName } from '../domain/task.ts';
import type { Database } from '../postgres/database.ts';

/** The context of the engine. Passed, never imported: two systems can live in one process. */
export interface TaskContext {
  readonly db: Database;
  readonly queue: TaskQueue;
  readonly log: Logger;
}

/** Notifies the workers that work is due. A lost notice costs time only: the reconciler notifies again. */
export interface TaskQueue {
  /** `again`: also if the queue has a job for the same attempt, whose taker seems to be dead; at most once in some seconds. */
  notify(tasks: readonly DueTask[], again?: boolean): Promise<void>;
}

export interface Tolerance {
  /** Errors that pass, such as a lost connection, a lock or a full disk. Infinity: they are retried without end and not counted. */
  readonly transient: number;
  /** A timeout of the server: the same work meets the same limit. */
  readonly timeout: number;
  readonly defect: number;
}

/** All that is particular to a kind of background work. `Context` is what its work needs of the system. */
export interface TaskKind<Context> {
  readonly name: TaskKindName;
  readonly label?: (task: TaskClaim) => string;
  /** When it is given back as a worker stops: at once, or when the time that a stop may take runs short. */
  readonly stops: 'at once' | 'at the deadline';
  readonly tolerance: Tolerance;
  /** Workers that may vanish with it in a row before it is taken to be what ends them. */
  readonly maxLosses: number;
  /** Done beside the jobs of the queue, so many at a time in each worker. Default: as a job. */
  readonly beside?: number;
  /** Only workers of a service do it, and not those that are there for a command. */
  readonly isOfService?: true;
  /** Tasks of one group (`group_id`) that may be under way; default: as many as there are. */
  readonly maxOfGroup?: number;
  /** Returns the pause after an error; `failures` counts those since the last progress. */
  readonly pauseMs: (failures: number) => number;
  /** The work, with the fence (`endTask`) as its last statement. Throws `ConflictError` if the task is lost, `FinalFailure` to give up. */
  readonly run: (context: Context, claim: TaskClaim, signal: AbortSignal) => Promise<void>;
  /** At the end of its tolerance, or after a `FinalFailure`: ends the subject, unless it has ended, and its tasks, which else come back. */
  readonly fail: (context: Context, task: TaskClaim, failure: TaskFailure) => Promise<void>;
  /** Starts whatever else should be under way. May be called anywhere, anytime, twice. */
  readonly reconcile?: (context: Context) => Promise<void>;
}

/** Notifies the queue. One that is away is no error here: what is due stands in the table, and the reconciler notifies again. */
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
