import type { Logger } from 'pino';

export interface Poller {
  stop(): Promise<void>;
}

type Poll = () => void | Promise<void>;

/** Polls immediately, and then `everyMs` after the end of each poll. `poll` must not throw. */
export function startPoller(everyMs: number, poll: Poll): Poller {
  return start(everyMs, poll, false);
}

/**
 * Polls for the first time after `everyMs`. Does not keep the process alive. `poll` must not throw.
 */
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
 * Calls `renew` every `everyMs` until it returns false. A failed call is ignored, because a lease
 * lasts for several intervals. Does not keep the process alive.
 */
export function keepAlive(everyMs: number, renew: () => Promise<boolean>): KeepAlive {
  // Does not wait for `renew`, so that a call that hangs does not delay the next.
  const beats = startWatch(everyMs, () => {
    renew().then(
      (isThere) => (isThere ? undefined : beats.stop()),
      () => undefined,
    );
  });
  return beats;
}

/**
 * Returns the result of the work. If the deadline passes first, returns the result of `late`. The
 * work then continues, because it cannot be stopped, but its result is ignored.
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
  /**
   * Maximum duration in milliseconds. The phase gets less time if the total time is nearly used up.
   */
  readonly deadlineMs: number;
  readonly run: () => Promise<void>;
  readonly force?: () => void;
}

/**
 * Minimum time for a phase, even if earlier phases were late. It is enough to close idle
 * connections.
 */
const leastMs = 250;

/**
 * Runs the phases in order. The first phases stop the intake of work, and the last ones stop
 * services that other phases need. If a phase fails or is late, logs this and continues with the
 * next phase. The shutdown therefore takes at most `totalMs`, plus `leastMs` for each remaining
 * phase. Returns true if all phases succeeded in time.
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
