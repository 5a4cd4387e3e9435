import { Interrupted } from '../base/errors.ts';
import type { DueTask, TaskClaim, TaskKindName } from '../domain/task.ts';
import { kindOf, runTask, Turns, takeNextTask } from './run-task.ts';
import { claimTask, findNextTasks } from './store.ts';
import type { TaskContext, TaskKind } from './task-kind.ts';

/**
 * Runs tasks that spend most of their time waiting. These tasks are not run by jobs of the queue,
 * because a hanging task would occupy a place that chunks need.
 */
export interface Runner {
  /** Called by the queue and the reconciler when work may be due. */
  wake(): void;
  /**
   * Stops claiming tasks. Immediately releases tasks whose kind stops at once. After `graceMs`,
   * releases all tasks that are still running.
   */
  stop(graceMs: number): Promise<void>;
}

export function startRunner<C extends TaskContext>(
  context: C,
  kinds: readonly TaskKind<C>[],
  atATime: number,
): Runner {
  const places = new Places(context, kinds, atATime);
  const turns = new Turns();
  let search: Promise<void> | null = null;
  let isWoken = false;

  const look = async (): Promise<void> => {
    while (places.areFree) {
      isWoken = false;
      const claim = await takeNextTask(context, kinds, turns);
      if (claim === null) {
        if (isWoken) continue;
        return;
      }
      places.run(claim, wake);
    }
  };
  const wake = (): void => {
    isWoken = true;
    search ??= look()
      .catch((error: unknown) => context.log.warn({ err: error }, 'tasks are left for later'))
      .finally(() => {
        search = null;
      });
  };
  return {
    wake,
    stop: (graceMs) =>
      places.stop(graceMs, async () => {
        await search;
      }),
  };
}

/**
 * Runs a few tasks directly in the process that created them, without the queue. Tasks of different
 * environments are run in turn.
 */
export interface OwnTasks {
  /**
   * Runs a new task if a place is free and it is the turn of the task's environment. Otherwise,
   * returns false, and the caller must notify the queue.
   */
  tryRun(task: DueTask, environmentId: number): Promise<boolean>;
  stop(graceMs: number): Promise<void>;
}

/** `inTurn` contains the kinds of tasks for which environments take turns. */
export function openOwnTasks<C extends TaskContext>(
  context: C,
  kinds: readonly TaskKind<C>[],
  inTurn: readonly TaskKindName[],
  atATime: number,
): OwnTasks {
  const { db } = context;
  const places = new Places(context, kinds, atATime);
  const turns = new Turns();
  const take = async ({ kind, taskId }: DueTask, environmentId: number): Promise<boolean> => {
    const [next] = await findNextTasks(db, inTurn, turns.served, 1);
    if (next?.kind !== kind || next.environmentId !== environmentId) return false;
    const claim = await claimTask(db, taskId, kindOf(kinds, kind).maxLosses);
    if (claim === null) return false;
    turns.markServed(environmentId);
    places.run(claim);
    return true;
  };
  let attempt: Promise<boolean> | null = null;
  return {
    async tryRun(task, environmentId) {
      // Only one call at a time looks for a place, because a second one would not know the result
      // of the first.
      if (attempt !== null || !places.areFree) return false;
      attempt = take(task, environmentId).finally(() => {
        attempt = null;
      });
      return attempt;
    },
    stop: (graceMs) =>
      places.stop(graceMs, async () => {
        await attempt?.catch(() => undefined);
      }),
  };
}

class Places<C extends TaskContext> {
  readonly #context: C;
  readonly #kinds: readonly TaskKind<C>[];
  readonly #count: number;
  readonly #running = new Set<Promise<void>>();
  readonly #stopping = new AbortController();
  readonly #deadline = new AbortController();

  constructor(context: C, kinds: readonly TaskKind<C>[], count: number) {
    this.#context = context;
    this.#kinds = kinds;
    this.#count = count;
  }

  get areFree(): boolean {
    return this.#running.size < this.#count && !this.#stopping.signal.aborted;
  }

  run(claim: TaskClaim, onEnd: () => void = () => undefined): void {
    const signals = { stopping: this.#stopping.signal, deadline: this.#deadline.signal };
    const run = runTask(this.#context, kindOf(this.#kinds, claim.kind), claim, signals)
      .catch((error: unknown) =>
        this.#context.log.warn({ err: error, task: claim.kind }, 'a task is left for later'),
      )
      .finally(() => {
        this.#running.delete(run);
        onEnd();
      });
    this.#running.add(run);
  }

  /** `endSearch` must resolve when no further task can start. */
  async stop(graceMs: number, endSearch: () => Promise<void>): Promise<void> {
    this.#stopping.abort(new Interrupted('the worker stops'));
    const late = new Interrupted('the worker has no time left');
    const timer = setTimeout(() => this.#deadline.abort(late), graceMs);
    await endSearch();
    await Promise.all(this.#running);
    clearTimeout(timer);
  }
}
