import { expect, test } from 'vitest';
import { type Clock, growing, pollUntil, retry } from '../../src/base/retry.ts';

/** A clock that advances only during waits, and the list of its waits. */
function manualClock(onWait = (_turn: number): void => undefined) {
  const waits: number[] = [];
  let nowMs = 0;
  const clock: Clock = {
    now: () => nowMs,
    async wait(ms) {
      nowMs += ms;
      onWait(waits.push(ms));
    },
  };
  return { clock, waits };
}

function failing(untilAttempt: number) {
  let attempts = 0;
  return async (): Promise<number> => {
    if (++attempts < untilAttempt) throw new Error(String(attempts));
    return attempts;
  };
}

test('work is repeated with pauses until it succeeds, and each pause is announced', async () => {
  const { clock, waits } = manualClock();
  const announced: unknown[] = [];
  const policy = {
    pauseMs: growing(100, 300),
    onRetry: (error: unknown, ...figures: number[]) =>
      void announced.push([(error as Error).message, ...figures]),
  };
  expect(await retry(policy, failing(5), clock)).toBe(5);
  expect(waits).toEqual([100, 200, 300, 300]);
  expect(announced.slice(0, 2)).toEqual([
    ['1', 1, 100],
    ['2', 2, 200],
  ]);
});

test.each([
  ['after the last attempt', { tries: 3, pauseMs: 10 }, '3', [10, 10]],
  ['once the time since the first failure is over', { forMs: 25, pauseMs: 10 }, '4', [10, 10, 10]],
  ['at an error that does not pass', { isTransient: (e: unknown) => String(e) !== 'Error: 2' }, '2', []],
] as const)('a retry throws the last error %s', async (_, policy, lastMessage, pauses) => {
  const { clock, waits } = manualClock();
  await expect(retry(policy, failing(9), clock)).rejects.toThrow(lastMessage);
  expect(waits).toEqual(pauses);
});

test('a stop between two attempts throws the reason of the signal', async () => {
  const stop = new AbortController();
  const { clock, waits } = manualClock(() => stop.abort(new Error('stopped')));
  const policy = { pauseMs: 10, signal: stop.signal };
  await expect(retry(policy, failing(9), clock)).rejects.toThrow('stopped');
  expect(waits).toEqual([10]);
});

test('a stop does not hide an error that is not transient', async () => {
  const policy = { isTransient: () => false, signal: AbortSignal.abort(new Error('stopped')) };
  await expect(retry(policy, failing(9))).rejects.toThrow('1');
});

test('a poll ends when its condition is true, its time is over, or it is stopped', async () => {
  const { clock, waits } = manualClock();
  const after = (turns: number) => async () => --turns === 0;
  expect(await pollUntil({ everyMs: growing(10) }, after(3), clock)).toBe(true);
  expect(waits).toEqual([10, 20]);
  expect(await pollUntil({ everyMs: 10, forMs: 25 }, after(9), clock)).toBe(false);
  expect(waits).toHaveLength(5);
  expect(await pollUntil({ everyMs: 10, signal: AbortSignal.abort() }, after(9), clock)).toBe(false);
  expect(waits).toHaveLength(5);
});
