import type { System } from '../context.ts';
import type { Poller } from '../timers.ts';
import type { TaskKind } from './task-kind.ts';

/** Background work of a capability. */
export interface WorkSeam {
  /** Opens what the work needs of a process that does it. */
  open(system: System): Work;
}

export interface Work {
  readonly kinds?: readonly TaskKind<System>[];
  /** Starts what watches for work in every worker. */
  start?(): Poller | null;
  /** Is called when all work has ended or was given back. */
  close?(): void;
}

/** Gives a kind the context that its work needs beyond the system. */
export function withContext<Context>(kind: TaskKind<Context>, context: Context): TaskKind<System> {
  const { reconcile } = kind;
  return {
    ...kind,
    run: (_, claim, signal) => kind.run(context, claim, signal),
    fail: (_, task, failure) => kind.fail(context, task, failure),
    reconcile: async () => reconcile?.(context),
  };
}
