import { Interrupted } from '../base/errors.ts';
import type { DueTask, TaskClaim, TaskKindName } from '../domain/task.ts';
import type { Database } from '../postgres/database.ts';
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
 * Runs a few tasks directly in the process that creates them, without the queue. Tasks of different
 * environments are run in turn.
 */
export interface OwnTasks {
  /** Reserves a place for a task. Returns `null` if no place is free. */
  reserve(): OwnPlace | null;
  stop(graceMs: number): Promise<void>;
}

/** A place that is reserved until `run` or `release` is called. */
export interface OwnPlace {
  /**
   * Claims a task in the transaction that creates it. Returns `null` if another environment has the
   * turn. The caller must then notify the queue.
   */
  claim(db: Database, task: DueTask, environmentId: number): Promise<TaskClaim | null>;
  /** Runs the task. The transaction that created it must have been committed. */
  run(claim: TaskClaim): void;
  /** Does nothing if the place runs a task or has already been released. */
  release(): void;
}

/** `inTurn` contains the kinds of tasks for which environments take turns. */
export function openOwnTasks<C extends TaskContext>(
  context: C,
  kinds: readonly TaskKind<C>[],
  inTurn: readonly TaskKindName[],
  atATime: number,
): OwnTasks {
  const places = new Places(context, kinds, atATime);
  const turns = new Turns();
  return {
    reserve() {
      const release = places.reserve();
      if (release === null) return null;
      return {
        async claim(db, { kind, taskId }, environmentId) {
          const taskKind = kinds.find(({ name }) => name === kind);
          const [next] = await findNextTasks(db, inTurn, turns.served, 1);
          const isNext = next?.kind === kind && next.environmentId === environmentId;
          return taskKind === undefined || !isNext ? null : claimTask(db, taskId, taskKind.maxLosses);
        },
        run(claim) {
          turns.markServed(claim.environmentId);
          places.run(claim);
          release();
        },
        release,
      };
    },
    stop: (graceMs) => places.stop(graceMs),
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

  /**
   * Reserves a place. Returns the function that releases the place, or `null` if no place is free.
   * Stopping the runner waits until the place has been released.
   */
  reserve(): (() => void) | null {
    if (!this.areFree) return null;
    let end: () => void = () => undefined;
    const reservation = new Promise<void>((resolve) => {
      end = resolve;
    });
    this.#running.add(reservation);
    return () => {
      this.#running.delete(reservation);
      end();
    };
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

  /**
   * `endSearch` must resolve when no further task can start. Omit it if no task can start anyway.
   */
  async stop(graceMs: number, endSearch?: () => Promise<void>): Promise<void> {
    this.#stopping.abort(new Interrupted('the worker stops'));
    const late = new Interrupted('the worker has no time left');
    const timer = setTimeout(() => this.#deadline.abort(late), graceMs);
    await endSearch?.();
    // A reserved place may become a task.
    while (this.#running.size > 0) await Promise.all(this.#running);
    clearTimeout(timer);
  }
}
