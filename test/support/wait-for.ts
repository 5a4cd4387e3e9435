import { setTimeout as sleep } from 'node:timers/promises';

/** A machine may be slow, so how long a wait may take says nothing of the service: a test that promises a time says it. */
export const patienceMs = 180_000;

/** Whoever has waited long is in no hurry, and each look costs those who are waited for. */
const shortestPauseMs = 20;
const longestPauseMs = 100;

/**
 * Looks again and again until `look` gives something other than null, undefined or false, and gives that. Says at the end
 * what it was waiting for and what it saw last (or how looking failed).
 */
export async function waitFor<T>(
  what: string,
  look: () => T | Promise<T>,
  options: { readonly timeoutMs?: number; readonly everyMs?: number } = {},
): Promise<NonNullable<Exclude<T, false>>> {
  const { timeoutMs = patienceMs, everyMs } = options;
  const startedAt = performance.now();
  const deadline = startedAt + timeoutMs;
  for (let seen: unknown; ; ) {
    try {
      const found = await look();
      if (found !== null && found !== undefined && found !== false) {
        return found as NonNullable<Exclude<T, false>>;
      }
      seen = found;
    } catch (error) {
      seen = error;
    }
    if (performance.now() > deadline) {
      throw new Error(`waited ${timeoutMs} ms for ${what}; saw last: ${String(seen)}`, { cause: seen });
    }
    const waited = performance.now() - startedAt;
    await sleep(everyMs ?? Math.min(longestPauseMs, Math.max(shortestPauseMs, waited / 20)));
  }
}
