import { RECONCILE_MS } from '../base/limits.ts';
import { type Poller, startPoller } from '../base/timers.ts';
import { capitalise } from '../base/wording.ts';
import { taskFields } from '../domain/task.ts';
import type { StopSignals } from './run-task.ts';
import { findSuspect, hasActiveTasks, type LostTask, rescueTasks, type Suspect } from './store.ts';
import { notifyQueue, type TaskContext, type TaskKind } from './task-kind.ts';
import { takeUnnotifiedTasks } from './unnotified-store.ts';
import { endLostSessions } from './worker-store.ts';

/** A notice is repeated if no worker has claimed the task within this time. */
const notifyAgainMs = 5_000;

/**
 * Ends lost sessions, frees tasks of vanished workers, repeats lost notices, and calls `reconcile`
 * of each kind. Several processes may call this.
 */
export async function reconcileTasks<C extends TaskContext>(
  context: C,
  kinds: readonly TaskKind<C>[],
): Promise<void> {
  const { db } = context;
  const names = kinds.map(({ name }) => name);
  await endLostSessions(db, names);
  const lost = await rescueTasks(db, names);
  for (const kind of kinds) {
    for (const task of lost) if (task.kind === kind.name) await handleLoss(context, kind, task);
  }
  const unnotified = await takeUnnotifiedTasks(db, names, notifyAgainMs);
  for (const again of [false, true]) {
    await notifyQueue(
      context,
      unnotified.filter((task) => task.again === again),
      again,
    );
  }
  for (const kind of kinds) await kind.reconcile?.(context);
}

async function handleLoss<C extends TaskContext>(
  context: C,
  kind: TaskKind<C>,
  task: LostTask,
): Promise<void> {
  const { losses } = task;
  context.log.warn({ ...taskFields(task), losses }, 'a task is taken back from a worker that went silent');
  if (losses < kind.maxLosses) return;
  const label = kind.label?.(task) ?? `the ${kind.name}`;
  const message = `${capitalise(label)} lost its worker ${losses} times; it may be what kills it`;
  await kind.fail(context, task, { code: 'worker_lost', message });
}

/** While no task is active, only one poll in this many also reconciles. */
const POLLS_AT_REST = 5;

/**
 * Polls immediately and every RECONCILE_MS. While tasks are active, each poll reconciles and calls
 * `onTasks`, because a notice may have been lost. A failed poll is logged and repeated.
 */
export function startReconciler<C extends TaskContext>(
  context: C,
  kinds: readonly TaskKind<C>[],
  onTasks: () => void,
): Poller {
  const names = kinds.map(({ name }) => name);
  let pollsAtRest = 0;
  const poll = async (): Promise<void> => {
    const isActive = await hasActiveTasks(context.db, names);
    if (isActive) onTasks();
    if (isActive || pollsAtRest === 0) await reconcileTasks(context, kinds);
    pollsAtRest = isActive ? 0 : (pollsAtRest + 1) % POLLS_AT_REST;
  };
  return startPoller(RECONCILE_MS, async () => {
    await poll().catch((error: unknown) =>
      context.log.warn({ err: error }, 'reconciling failed; the next poll tries again'),
    );
  });
}

/**
 * Runs a suspect, which has lost SUSPECT_LOSSES workers, in its own worker process. Resolves when
 * that process ends. The earlier losses may have been caused by other tasks of the same workers. If
 * the suspect's own process is also lost, the suspect is the cause.
 */
export type RunAlone = (suspect: Suspect, signals: StopSignals) => Promise<void>;

interface Suspects {
  /** Starts a suspect if one is due and none is running. */
  wake(): void;
  stop(): Promise<void>;
}

export function openSuspects(
  { db, log }: Pick<TaskContext, 'db' | 'log'>,
  kinds: readonly Pick<TaskKind<never>, 'name'>[],
  runAlone: RunAlone,
  signals: StopSignals,
): Suspects {
  const names = kinds.map(({ name }) => name);
  const runNext = async (): Promise<void> => {
    const suspect = await findSuspect(db, names);
    if (suspect !== null && !signals.stopping.aborted) await runAlone(suspect, signals);
  };
  let running: Promise<void> | null = null;
  return {
    wake() {
      running ??= runNext()
        .catch((error: unknown) =>
          log.warn({ err: error }, 'a task that lost its worker before is left for later'),
        )
        .finally(() => {
          running = null;
        });
    },
    async stop() {
      await running;
    },
  };
}
