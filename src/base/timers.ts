import type { Logger } from 'pino';

/* Polls, renewals, deadlines and the phases of a shutdown: all of them go by the clock. */

export interface Poller {
  /** Waits for the poll under way, and begins no other. */
  stop(): Promise<void>;
}

/** Does something at once, and again `everyMs` after it has ended. `poll` must not throw. */
export function startPoller(everyMs: number, poll: () => Promise<void>): Poller {
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  let current: Promise<void> = Promise.resolve();
  const run = (): void => {
    current = poll().then(() => {
      if (!stopped) timer = setTimeout(run, everyMs);
    });
  };
  run();
  return {
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await current;
    },
  };
}

export interface KeepAlive {
  stop(): void;
}

/**
 * Calls `renew` every `everyMs` until stopped or until it says that what it renews is gone. A renewal that fails is tried again at
 * the next beat: what is renewed outlives several. No process lives on for its sake.
 */
export function keepAlive(everyMs: number, renew: () => Promise<boolean>): KeepAlive {
  const timer = setInterval(() => {
    renew().then(
      (isThere) => {
        if (!isThere) clearInterval(timer);
      },
      () => undefined,
    );
  }, everyMs).unref();
  return { stop: () => clearInterval(timer) };
}

/**
 * Returns the outcome of the work; if that takes longer, what `late` returns or throws. The work itself goes on, since it may hang in
 * something that nobody can stop, and what becomes of it then concerns nobody.
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

/** A step of stopping. */
export interface Phase {
  readonly name: string;
  /** Milliseconds it may take; less if the whole has less left. */
  readonly deadlineMs: number;
  readonly run: () => Promise<void>;
  /** Called when it is late, to end by force what would not end by itself. */
  readonly force?: () => void;
}

/** The least time of a phase, however late the ones before it were: enough to close idle things. */
const leastMs = 250;

/**
 * Runs the phases one after another: first what lets work in, last what everything stands on. A phase that is late or
 * fails is logged and left behind, so that the whole ends within `totalMs` (and `leastMs` for each phase still to
 * come). True if every phase ended in time and well.
 */
export async function shutDown(phases: readonly Phase[], totalMs: number, log: Logger): Promise<boolean> {
  const endsAt = performance.now() + totalMs;
  let clean = true;
  for (const phase of phases) {
    const leftMs = Math.max(endsAt - performance.now(), leastMs);
    const outcome = await runPhase(phase, Math.min(phase.deadlineMs, leftMs));
    if (outcome === 'done') continue;
    clean = false;
    if (outcome === 'late')
      log.warn({ phase: phase.name }, 'a phase of the shutdown is late and left behind');
    else log.warn({ phase: phase.name, err: outcome.error }, 'a phase of the shutdown failed');
  }
  return clean;
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
