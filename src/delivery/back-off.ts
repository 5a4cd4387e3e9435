import { MAX_NOTICE_ATTEMPTS } from '../domain/limits.ts';

const minuteMs = 60_000;
const longestPauseMs = 6 * 60 * minuteMs;

/** Milliseconds to wait after the attempt of this number, from 1; null: it was the last. */
export function pauseAfter(attempt: number): number | null {
  if (attempt >= MAX_NOTICE_ATTEMPTS) return null;
  return Math.min(minuteMs * 2 ** (attempt - 1), longestPauseMs);
}
