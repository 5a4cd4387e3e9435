import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Limit of a wait in milliseconds. A slow machine must not fail a test, so a promised time is
 * tested separately.
 */
export const patienceMs = 180_000;

/**
 * Pauses between looks in milliseconds. They grow with the wait, because each look costs the
 * service.
 */
const shortestPauseMs = 20;
const longestPauseMs = 100;

/**
 * Repeats `look` until it returns a value other than null, undefined or false. Throws at the end
 * with the subject of the wait, and the last value or error.
 */
export async function waitFor<T>(
  what: string,
  look: () => T | Promise<T>,
  options: { readonly timeoutMs?: number; readonly everyMs?: number } = {},
): Promise<NonNullable<Exclude<T, false>>> {
  const { timeoutMs = patienceMs, everyMs } = options;
  const startedAt = performance.now();
  const deadline = startedAt + timeoutMs;
  let last: unknown;
  let isLate = false;
  while (!isLate) {
    try {
      const value = await look();
      if (value !== null && value !== undefined && value !== false) {
        return value as NonNullable<Exclude<T, false>>;
      }
      last = value;
    } catch (error) {
      last = error;
    }
    const now = performance.now();
    isLate = now > deadline;
    const pauseMs = Math.min(longestPauseMs, Math.max(shortestPauseMs, (now - startedAt) / 20));
    if (!isLate) await sleep(everyMs ?? pauseMs);
  }
  throw new Error(`waited ${timeoutMs} ms for ${what}; saw last: ${String(last)}`, { cause: last });
}
