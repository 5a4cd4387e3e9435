import { ConflictError, Fault, FinalFailure, Interrupted } from '../base/errors.ts';
import { HEARTBEAT_MS } from '../base/limits.ts';
import { keepAlive } from '../base/timers.ts';
import { capitalise } from '../base/wording.ts';
import { type TaskClaim, taskFields } from '../domain/task.ts';
import { describeFailure, isTimeout, isTransient } from '../postgres/sqlstate.ts';
import { claimNextTask, claimTask, findNextTasks, LostClaim, releaseTask, renewTask } from './store.ts';
import type { TaskContext, TaskKind, Tolerance } from './task-kind.ts';
import { endEarlierSessions, endOwnSession } from './worker-store.ts';

/**
 * When the worker begins to stop, `stopping` interrupts the tasks whose kind stops at once. At the
 * shutdown deadline, `deadline` interrupts all other tasks.
 */
export interface StopSignals {
  readonly stopping: AbortSignal;
  readonly deadline: AbortSignal;
}

const never = new AbortController().signal;
export const withoutStop: StopSignals = { stopping: never, deadline: never };

/**
 * Maximum number of tasks that a worker tries to claim. It tries several, because other workers may
 * be faster.
 */
const candidates = 16;

export async function runNextTask<C extends TaskContext>(
  context: C,
  kinds: readonly TaskKind<C>[],
  turns: Turns,
  signals: StopSignals,
): Promise<void> {
  if (signals.stopping.aborted) return;
  const claim = await takeNextTask(context, kinds, turns);
  if (claim !== null) await runTask(context, kindOf(kinds, claim.kind), claim, signals);
}

export async function takeNextTask<C extends TaskContext>(
  { db }: Pick<TaskContext, 'db'>,
  kinds: readonly TaskKind<C>[],
  turns: Turns,
): Promise<TaskClaim | null> {
  const names = kinds.map(({ name }) => name);
  for (const next of await findNextTasks(db, names, turns.served, candidates)) {
    const claim = await claimNextTask(db, next, kindOf(kinds, next.kind).maxOfGroup);
    // Another worker was faster.
    if (claim === null) continue;
    turns.markServed(next.environmentId);
    return claim;
  }
  return null;
}

export async function runTaskById<C extends TaskContext>(
  context: C,
  kind: TaskKind<C>,
  taskId: number,
  signals: StopSignals = withoutStop,
): Promise<void> {
  const claim = await claimTask(context.db, taskId, kind.maxLosses);
  if (claim !== null) await runTask(context, kind, claim, signals);
}

export function kindOf<C>(kinds: readonly TaskKind<C>[], name: string): TaskKind<C> {
  const kind = kinds.find((each) => each.name === name);
  if (kind === undefined) throw new Fault(`no kind of task is called ${name}`);
  return kind;
}

export async function runTask<C extends TaskContext>(
  context: C,
  kind: TaskKind<C>,
  claim: TaskClaim,
  { stopping, deadline }: StopSignals,
): Promise<void> {
  const lost = new AbortController();
  const heartbeat = keepAlive(HEARTBEAT_MS, async () => {
    const isOurs = await renewTask(context.db, claim);
    if (!isOurs) lost.abort(new LostClaim());
    return isOurs;
  });
  const signal = AbortSignal.any([lost.signal, kind.stops === 'at once' ? stopping : deadline]);
  try {
    await within(deadline, async () => {
      await endEarlierSessions(context.db, claim);
      await kind.run(context, claim, signal);
    });
  } catch (error) {
    heartbeat.stop();
    await releaseClaim(context, kind, claim, signal.aborted ? signal.reason : error);
  } finally {
    heartbeat.stop();
  }
}

async function releaseClaim<C extends TaskContext>(
  context: C,
  kind: TaskKind<C>,
  claim: TaskClaim,
  error: unknown,
): Promise<void> {
  const { db, log } = context;
  const fields = { ...taskFields(claim), attempt: claim.attempt };
  if (error instanceof ConflictError) return log.info(fields, error.message);
  if (error instanceof Interrupted) return interrupt(context, claim);
  const sort = sortOf(error);
  const isFinal = error instanceof FinalFailure || error instanceof Fault;
  const tolerance = isFinal ? 0 : kind.tolerance[sort];
  const counts = Number.isFinite(tolerance);
  const text = error instanceof Error ? error.message : String(error);
  let failures: number | null;
  try {
    const pauseMs = kind.pauseMs(claim.failures + (counts ? 1 : 0));
    failures = await releaseTask(db, claim, { message: text, counts, pauseMs });
  } catch (failure) {
    log.warn(
      { ...fields, err: error, failure },
      'a task could not be given back; its lease runs out instead',
    );
    return;
  }
  const line = { ...fields, err: error };
  if (failures === null) {
    // A transient error is normal, because the new owner or a cancellation ended the session. Any
    // other error may have occurred after the commit that ended the task.
    const { message } = new LostClaim();
    return sort === 'transient' ? log.info(line, message) : log.warn(line, message);
  }
  if (error instanceof FinalFailure) return kind.fail(context, claim, error);
  if (sort === 'transient') log.warn(line, 'a task is given back; it will be tried again');
  else log.error(line, 'a task failed');
  if (failures < tolerance) return;
  const { code, message } = describeFailure(error, `${kind.name}_failed`);
  const label = kind.label?.(claim);
  await kind.fail(context, claim, {
    code,
    message: label === undefined ? message : `${capitalise(label)}: ${message}`,
  });
}

function sortOf(error: unknown): keyof Tolerance {
  if (isTimeout(error)) return 'timeout';
  return isTransient(error) ? 'transient' : 'defect';
}

/**
 * Releases an interrupted task. Does not count the attempt. Ends the session first, which releases
 * its locks. Work that continues fails at the fence.
 */
async function interrupt({ db, log }: TaskContext, claim: TaskClaim): Promise<void> {
  const fields = { ...taskFields(claim), attempt: claim.attempt };
  try {
    await endOwnSession(db, claim);
    await releaseTask(db, claim);
    log.info(fields, 'a task is given back: the worker stops');
  } catch (error) {
    log.warn({ ...fields, err: error }, 'a task could not be given back; its lease runs out instead');
  }
}

/** Throws the signal's reason at the deadline. Work that continues fails at the fence. */
async function within(deadline: AbortSignal, work: () => Promise<void>): Promise<void> {
  deadline.throwIfAborted();
  let onAbort: () => void = () => undefined;
  const late = new Promise<never>((_, reject) => {
    onAbort = () => reject(deadline.reason as Error);
    deadline.addEventListener('abort', onAbort);
  });
  try {
    await Promise.race([work(), late]);
  } finally {
    deadline.removeEventListener('abort', onAbort);
  }
}

/**
 * Maximum number of environments that are remembered. All other environments count as never served.
 */
const maxRemembered = 1_000;

/**
 * Order in which this process has served environments. Among environments with equally many running
 * tasks, the one served longest ago is next.
 */
export class Turns {
  readonly #served = new Set<number>();

  get served(): number[] {
    return [...this.#served];
  }

  markServed(environmentId: number): void {
    // Moves the environment to the end: a Set keeps the order of insertion.
    this.#served.delete(environmentId);
    this.#served.add(environmentId);
    const [oldest] = this.#served;
    if (this.#served.size > maxRemembered && oldest !== undefined) this.#served.delete(oldest);
  }
}
