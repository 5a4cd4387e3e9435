import type { Poller } from '../base/timers.ts';
import type { System } from '../context.ts';
import type { TaskKindName } from '../domain/task.ts';
import type { TaskKind } from './task-kind.ts';

/** Background work of a capability. */
export interface WorkSeam {
  /** Opens what the work needs of a process that does it. */
  open(system: System, worker: WorkerProcess): Work;
}

export interface WorkerProcess {
  /** The environment variables of the process. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** False: it is there for one command, or one task. */
  readonly isOfService: boolean;
}

/** Work of a capability is done beside the jobs of the queue, so that it takes no place of a chunk. */
export type BesideKind<Context> = TaskKind<Context> & { readonly beside: number };

export interface Work {
  readonly kinds?: readonly BesideKind<System>[];
  /** Starts what watches for work; `wake` tells that tasks of a kind that is done beside the others are due. */
  start?(wake: (kind: TaskKindName) => void): Poller | null;
  /** Is called when all work has ended or was given back. */
  close?(): void;
}

/** Gives a kind the context that its work needs beyond the system. */
export function withContext<Context>(kind: BesideKind<Context>, context: Context): BesideKind<System> {
  const { reconcile } = kind;
  return {
    ...kind,
    run: (_, claim, signal) => kind.run(context, claim, signal),
    fail: (_, task, failure) => kind.fail(context, task, failure),
    reconcile: async () => reconcile?.(context),
  };
}
