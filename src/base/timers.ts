import type { Logger } from 'pino';

export interface Poller {
  stop(): Promise<void>;
}

/**
 * One poll. It may return a time in milliseconds until the next poll that differs from the usual
 * interval.
 */
type Poll = () => void | Promise<void> | Promise<number>;

/** Polls immediately, and `everyMs` after the end of each poll. `poll` must not throw. */
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
  const pause = (pauseMs: number): void => {
    timer = setTimeout(() => {
      current = run();
    }, pauseMs);
    if (isWatch) timer.unref();
  };
  const run = async (): Promise<void> => {
    const pauseMs = (await poll()) ?? everyMs;
    if (!isStopped) pause(pauseMs);
  };
  if (isWatch) pause(everyMs);
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
 * Calls `renew` every `everyMs` until it returns false. A failure is ignored, because a lease lasts
 * several intervals. Does not keep the process alive.
 */
export function keepAlive(everyMs: number, renew: () => Promise<boolean>): KeepAlive {
  // A call that hangs does not delay the next.
  const beats = startWatch(everyMs, () => {
    renew().then(
      (isThere) => (isThere ? undefined : beats.stop()),
      () => undefined,
    );
  });
  return beats;
}

/**
 * Returns the result of `work`. If the work takes longer than `deadlineMs`, calls `late` and
 * returns the result of `late`. The work then continues, but its result is ignored.
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
  /** Maximum duration in milliseconds. It is shorter if the total time is nearly used up. */
  readonly deadlineMs: number;
  readonly run: () => Promise<void>;
  readonly force?: () => void;
}

/** Minimum time for a phase if earlier phases were late. It is enough to close idle connections. */
const leastMs = 250;

/**
 * Runs the phases in order. The first phases stop the intake, and the last phases stop services
 * that other phases need. Logs a phase that fails or is late and continues. Takes at most
 * `totalMs`, plus `leastMs` for each remaining phase. Returns true if all phases succeeded in time.
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
