import type { Poller } from '../base/timers.ts';
import type { System } from '../context.ts';
import type { TaskKindName } from '../domain/task.ts';
import type { TaskKind } from '../tasks/task-kind.ts';

export interface WorkSeam {
  /** Opens the resources of the work in its process. */
  open(system: System, worker: WorkerProcess): Work;
}

export interface WorkerProcess {
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** False for a process of one command or task. */
  readonly isOfService: boolean;
}

/** Kind of work beside the queue, which takes no chunk's place. */
export type BesideKind<Context> = TaskKind<Context> & { readonly beside: number };

export interface Work {
  readonly kinds?: readonly BesideKind<System>[];
  /** Starts watching. `wake` announces due tasks of a kind beside the queue. */
  start?(wake: (kind: TaskKindName) => void): Poller | null;
  /** Called after all work has ended or was returned. */
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
