import { setTimeout as sleep } from 'node:timers/promises';

/** Ends early, and without an error, when the signal is given. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  await sleep(ms, undefined, signal === undefined ? {} : { signal }).catch(() => undefined);
}

/** Looks until there is something, or the time is up: null then. A look that fails has seen nothing. */
export async function until<T>(
  look: () => Promise<T | null>,
  { timeoutMs, everyMs = 100 }: { readonly timeoutMs: number; readonly everyMs?: number },
): Promise<T | null> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const found = await look().catch(() => null);
    if (found !== null) return found;
    if (performance.now() > deadline) return null;
    await pause(everyMs);
  }
}
