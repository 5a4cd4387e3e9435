export interface Rounds {
  /** Waits for the round under way, and begins no other. */
  stop(): Promise<void>;
}

/** Does something at once, and again `everyMs` after it has ended. `round` must not throw. */
export function startRounds(everyMs: number, round: () => Promise<void>): Rounds {
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  let current: Promise<void> = Promise.resolve();
  const run = (): void => {
    current = round().then(() => {
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
