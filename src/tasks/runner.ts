import { Interrupted } from '../base/errors.ts';
import type { DueTask, TaskClaim, TaskKindName } from '../domain/task.ts';
import { kindOf, runTask, Turns, takeNextTask } from './run-task.ts';
import { claimTask, findNextTasks } from './store.ts';
import type { TaskContext, TaskKind } from './task-kind.ts';

/** Runs kinds that mostly wait, beside the queue, so that a hanging task takes no chunk's place. */
export interface Runner {
  /** Called by the queue and the reconciler if work may be due. */
  wake(): void;
  /** Takes no more tasks. Returns those that do not end in `graceMs` or that stop at once. */
  stop(graceMs: number): Promise<void>;
}

export function startRunner<C extends TaskContext>(
  context: C,
  kinds: readonly TaskKind<C>[],
  atATime: number,
): Runner {
  const places = new Places(context, kinds, atATime);
  const turns = new Turns();
  let looking: Promise<void> | null = null;
  let lookAgain = false;

  const look = async (): Promise<void> => {
    while (places.areFree) {
      lookAgain = false;
      const claim = await takeNextTask(context, kinds, turns);
      if (claim === null) {
        if (lookAgain) continue;
        return;
      }
      places.run(claim, wake);
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
  return {
    wake,
    stop: (graceMs) =>
      places.stop(graceMs, async () => {
        await looking;
      }),
  };
}

/** Runs a few tasks in the process that made them, in turn, without the queue. */
export interface OwnTasks {
  /** Runs a new task. Returns false without a place or turn. Then notify the queue. */
  tryRun(task: DueTask, environmentId: number): Promise<boolean>;
  stop(graceMs: number): Promise<void>;
}

/** `inTurn`: the queue's kinds, in which environments take turns. */
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
    turns.took(environmentId);
    places.run(claim);
    return true;
  };
  let taking: Promise<boolean> | null = null;
  return {
    async tryRun(task, environmentId) {
      // Sequential, so that each sees current places and turns.
      if (taking !== null || !places.areFree) return false;
      taking = take(task, environmentId).finally(() => {
        taking = null;
      });
      return taking;
    },
    stop: (graceMs) =>
      places.stop(graceMs, async () => {
        await taking?.catch(() => undefined);
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

  /** `looked` resolves when no more tasks can come. */
  async stop(graceMs: number, looked: () => Promise<void>): Promise<void> {
    this.#stopping.abort(new Interrupted('the worker stops'));
    const late = new Interrupted('the worker has no time left');
    const timer = setTimeout(() => this.#deadline.abort(late), graceMs);
    await looked();
    await Promise.all(this.#running);
    clearTimeout(timer);
  }
}
