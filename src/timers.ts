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
