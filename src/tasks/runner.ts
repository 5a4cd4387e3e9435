import { Interrupted } from '../base/errors.ts';
import type { DueTask, TaskClaim, TaskKindName } from '../domain/task.ts';
import { kindOf, runTask, Turns, takeNextTask } from './run-task.ts';
import { claimTask, findNextTasks } from './store.ts';
import type { TaskContext, TaskKind } from './task-kind.ts';

/**
 * Runs tasks that spend most of their time waiting. They bypass the queue, so that a hanging task
 * does not take the place of a chunk.
 */
export interface Runner {
  /** Called by the queue and the reconciler when work may be due. */
  wake(): void;
  /**
   * Stops claiming tasks. Immediately releases tasks that can stop at once, and after `graceMs`
   * those that have not ended.
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
 * Runs a few tasks directly in the process that created them, bypassing the queue. Environments
 * take turns.
 */
export interface OwnTasks {
  /**
   * Runs a new task. Returns false if there is no free place or another environment has the turn.
   * The caller must then notify the queue.
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
      // Attempts do not overlap, so each of them sees the current free places and turns.
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

  /** `endSearch` resolves once no more tasks can start. */
  async stop(graceMs: number, endSearch: () => Promise<void>): Promise<void> {
    this.#stopping.abort(new Interrupted('the worker stops'));
    const late = new Interrupted('the worker has no time left');
    const timer = setTimeout(() => this.#deadline.abort(late), graceMs);
    await endSearch();
    await Promise.all(this.#running);
    clearTimeout(timer);
  }
}
