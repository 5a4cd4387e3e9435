export interface KeepAlive {
  stop(): void;
}

/**
 * Calls `renew` every `everyMs` until stopped or until it says that the lease is gone. A renewal that fails is
 * tried again at the next beat: the lease outlives several.
 */
export function keepAlive(everyMs: number, renew: () => Promise<boolean>): KeepAlive {
  const timer = setInterval(() => {
    renew().then(
      (ours) => {
        if (!ours) clearInterval(timer);
      },
      () => undefined,
    );
  }, everyMs);
  return { stop: () => clearInterval(timer) };
}
