export interface Clock {
  /** Milliseconds of a clock that never runs backwards. */
  now(): number;
  /** Resolves after `ms`, or as soon as the signal is aborted. */
  wait(ms: number, signal?: AbortSignal): Promise<void>;
}

export const wallClock: Clock = { now: () => performance.now(), wait };

export function wait(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    if (signal?.aborted) end();
    else signal?.addEventListener('abort', end);
  });
}

/**
 * A pause in milliseconds, or a function that returns it. The function gets the number of failures
 * or polls so far (at least 1).
 */
export type Pause = number | ((failures: number) => number);

export function growing(firstMs: number, longestMs = Number.POSITIVE_INFINITY, factor = 2) {
  return (failures: number): number => Math.min(firstMs * factor ** Math.max(0, failures - 1), longestMs);
}

function msOf(pause: Pause, failures: number): number {
  return typeof pause === 'number' ? pause : pause(failures);
}

/**
 * When to repeat failed work. If the policy has no limit, the work is repeated until it succeeds.
 */
export interface RetryPolicy {
  /** Maximum number of attempts, including the first. */
  readonly tries?: number;
  /**
   * An attempt that fails more than this many milliseconds after the first failure is the last one.
   */
  readonly forMs?: number;
  /** Default: no pause. */
  readonly pauseMs?: Pause;
  /** True if another attempt may succeed. Default: always. */
  readonly isTransient?: (error: unknown) => boolean;
  readonly signal?: AbortSignal | undefined;
  readonly onRetry?: (error: unknown, failures: number, pauseMs: number) => void | Promise<void>;
}

/**
 * Calls `work` until it succeeds.
 * @throws the last error, or the signal's reason if it is aborted after an error that allows
 * another attempt.
 */
export async function retry<T>(
  policy: RetryPolicy,
  work: () => Promise<T>,
  clock: Clock = wallClock,
): Promise<T> {
  const { tries = Number.POSITIVE_INFINITY, forMs = Number.POSITIVE_INFINITY, pauseMs = 0, signal } = policy;
  let failedAt: number | null = null;
  for (let failures = 1; ; failures++) {
    try {
      return await work();
    } catch (error) {
      if (policy.isTransient?.(error) === false) throw error;
      signal?.throwIfAborted();
      failedAt ??= clock.now();
      if (failures >= tries || clock.now() - failedAt > forMs) throw error;
      const ms = msOf(pauseMs, failures);
      await policy.onRetry?.(error, failures, ms);
      if (ms > 0) await clock.wait(ms, signal);
      signal?.throwIfAborted();
    }
  }
}

interface PollPolicy {
  readonly everyMs: Pause;
  /** Default: no limit. */
  readonly forMs?: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Returns true once `condition` holds. Returns false after `forMs`, or if the signal is aborted.
 */
export async function pollUntil(
  { everyMs, forMs = Number.POSITIVE_INFINITY, signal }: PollPolicy,
  condition: () => boolean | Promise<boolean>,
  clock: Clock = wallClock,
): Promise<boolean> {
  const begunAt = clock.now();
  for (let turns = 1; !(await condition()); turns++) {
    if (signal?.aborted || clock.now() - begunAt > forMs) return false;
    await clock.wait(msOf(everyMs, turns), signal);
    if (signal?.aborted) return false;
  }
  return true;
}
