import { Interrupted } from '../domain/errors.ts';
import { RECONCILE_MS } from '../domain/limits.ts';
import { startPoller } from './poller.ts';
import { kindOf, runTask, Turns, takeNextTask } from './run-task.ts';
import type { TaskContext, TaskKind } from './task-kind.ts';

/**
 * Does tasks of some kinds beside the jobs of the queue, so many at a time. For kinds that mostly wait for others (a receiver of
 * webhooks, a server to load from): one that hangs takes no place of a chunk.
 */
export interface Runner {
  /** Something may be due; the queue says so, and the runner looks by itself every RECONCILE_MS. */
  wake(): void;
  /** Takes no more tasks. Those under way have `graceMs` to end, unless they stop at once; the rest is given back. */
  stop(graceMs: number): Promise<void>;
}

export function startRunner<C extends TaskContext>(
  context: C,
  kinds: readonly TaskKind<C>[],
  atATime: number,
): Runner {
  const stopping = new AbortController();
  const deadline = new AbortController();
  const signals = { stopping: stopping.signal, deadline: deadline.signal };
  const turns = new Turns();
  const running = new Set<Promise<void>>();
  let looking: Promise<void> | null = null;
  let lookAgain = false;

  const look = async (): Promise<void> => {
    while (running.size < atATime && !stopping.signal.aborted) {
      lookAgain = false;
      const claim = await takeNextTask(context, kinds, turns);
      if (claim === null) {
        if (lookAgain) continue;
        return;
      }
      const run = runTask(context, kindOf(kinds, claim.kind), claim, signals)
        .catch((error: unknown) =>
          context.log.warn({ err: error, task: claim.kind }, 'a task is left for later'),
        )
        .finally(() => {
          running.delete(run);
          wake();
        });
      running.add(run);
    }
  };
  const wake = (): void => {
    lookAgain = true;
    looking ??= look()
      .catch((error: unknown) => context.log.warn({ err: error }, 'tasks are left for later'))
      .finally(() => {
        looking = null;
      });
  };
  const poller = startPoller(RECONCILE_MS, async () => wake());
  return {
    wake,
    async stop(graceMs) {
      stopping.abort(new Interrupted('the worker stops'));
      const timer = setTimeout(() => deadline.abort(new Interrupted('the worker has no time left')), graceMs);
      await poller.stop();
      await looking;
      await Promise.all(running);
      clearTimeout(timer);
    },
  };
}
