import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Maximum milliseconds of a wait. It is so long that a slow machine cannot fail a test. If a test
 * checks a promised time, it measures that time itself.
 */
export const patienceMs = 180_000;

/**
 * Shortest and longest pause between two calls of `look`, in milliseconds. Pauses grow during the
 * wait, because each call costs the service some work.
 */
const shortestPauseMs = 20;
const longestPauseMs = 100;

/**
 * Calls `look` until it returns a value other than null, undefined or false. After the timeout,
 * throws an error with `what` and the last value or error.
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
