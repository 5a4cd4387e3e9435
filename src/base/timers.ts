import type { Logger } from 'pino';

export interface Poller {
  stop(): Promise<void>;
}

type Poll = () => void | Promise<void>;

/** Polls at once, then `everyMs` after each end. `poll` must not throw. */
export function startPoller(everyMs: number, poll: Poll): Poller {
  return start(everyMs, poll, false);
}

/** Polls first after `everyMs`, without keeping the process alive. `poll` must not throw. */
export function startWatch(everyMs: number, poll: Poll): Poller {
  return start(everyMs, poll, true);
}

function start(everyMs: number, poll: Poll, isWatch: boolean): Poller {
  let isStopped = false;
  let timer: NodeJS.Timeout | undefined;
  let current: Promise<void> = Promise.resolve();
  const pause = (): void => {
    timer = setTimeout(() => {
      current = run();
    }, everyMs);
    if (isWatch) timer.unref();
  };
  const run = async (): Promise<void> => {
    await poll();
    if (!isStopped) pause();
  };
  if (isWatch) pause();
  else current = run();
  return {
    async stop() {
      isStopped = true;
      clearTimeout(timer);
      await current;
    },
  };
}

export interface KeepAlive {
  stop(): void;
}

/**
 * Calls `renew` every `everyMs` until it returns false. A failed renewal is repeated at the next
 * beat, since a lease outlives several. Does not keep the process alive.
 */
export function keepAlive(everyMs: number, renew: () => Promise<boolean>): KeepAlive {
  // A renewal without an answer does not delay the next one.
  const beats = startWatch(everyMs, () => {
    renew().then(
      (isThere) => (isThere ? undefined : beats.stop()),
      () => undefined,
    );
  });
  return beats;
}

/**
 * Returns the result of the work or, after the deadline, of `late`. Late work continues, because
 * nothing can stop it, and its result is ignored.
 */
export async function withDeadline<T, L>(
  work: Promise<T>,
  deadlineMs: number,
  late: () => L,
): Promise<T | L> {
  let timer: NodeJS.Timeout | undefined;
  const passed = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, deadlineMs);
  });
  try {
    return await Promise.race([work, passed.then(late)]);
  } finally {
    clearTimeout(timer);
  }
}

export interface Phase {
  readonly name: string;
  /** Milliseconds, less if the total is nearly spent. */
  readonly deadlineMs: number;
  readonly run: () => Promise<void>;
  /** Ends late work by force. */
  readonly force?: () => void;
}

/** Least time of a phase after late ones. It is enough to close idle connections. */
const leastMs = 250;

/**
 * Runs the phases in order: intake first, foundations last. Logs and abandons a late or failed
 * phase, so that the whole ends within `totalMs`, plus `leastMs` per remaining phase. Returns true
 * if all phases succeeded in time.
 */
export async function shutDown(phases: readonly Phase[], totalMs: number, log: Logger): Promise<boolean> {
  const endsAt = performance.now() + totalMs;
  let isClean = true;
  for (const phase of phases) {
    const leftMs = Math.max(endsAt - performance.now(), leastMs);
    const outcome = await runPhase(phase, Math.min(phase.deadlineMs, leftMs));
    if (outcome === 'done') continue;
    isClean = false;
    if (outcome === 'late')
      log.warn({ phase: phase.name }, 'a phase of the shutdown is late and left behind');
    else log.warn({ phase: phase.name, err: outcome.error }, 'a phase of the shutdown failed');
  }
  return isClean;
}

async function runPhase(phase: Phase, deadlineMs: number): Promise<'done' | 'late' | { error: unknown }> {
  const run = async (): Promise<'done'> => {
    await phase.run();
    return 'done';
  };
  try {
    return await withDeadline(run(), deadlineMs, () => {
      phase.force?.();
      return 'late';
    });
  } catch (error) {
    return { error };
  }
}
