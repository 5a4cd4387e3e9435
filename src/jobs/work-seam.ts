import type { Poller } from '../base/timers.ts';
import type { System } from '../context.ts';
import type { TaskKindName } from '../domain/task.ts';
import type { TaskKind } from '../tasks/task-kind.ts';

export interface WorkSeam {
  /** Opens the resources that the work needs in this process. */
  open(system: System, worker: WorkerProcess): Work;
}

export interface WorkerProcess {
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** False if the process runs a single command or task. */
  readonly isOfService: boolean;
}

/** Kind of task that bypasses the queue, so that it does not occupy the place of a chunk. */
export type BesideKind<Context> = TaskKind<Context> & { readonly beside: number };

export interface Work {
  readonly kinds?: readonly BesideKind<System>[];
  /** `wake` reports that a task of a kind that bypasses the queue is due. */
  start?(wake: (kind: TaskKindName) => void): Poller | null;
  /** Called after all tasks have ended or been released. */
  close?(): void;
}

export function withContext<Context>(kind: BesideKind<Context>, context: Context): BesideKind<System> {
  const { reconcile } = kind;
  return {
    ...kind,
    run: (_, claim, signal) => kind.run(context, claim, signal),
    fail: (_, task, failure) => kind.fail(context, task, failure),
    reconcile: async () => reconcile?.(context),
  };
}
