import { getActiveResourcesInfo } from 'node:process';
import { expect, test } from 'vitest';
import { startPoller, withDeadline } from '../../src/base/timers.ts';
import { waitFor } from '../support/wait-for.ts';

const never = new Promise<never>(() => undefined);
const tooLate = (): never => {
  throw new Error('late');
};
const countTimers = () => getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;

test('work in time returns its result and leaves no timer, and late work returns the fallback', async () => {
  const timersBefore = countTimers();
  expect(await withDeadline(Promise.resolve(7), 60_000, tooLate)).toBe(7);
  await expect(withDeadline(Promise.reject(new Error('refused')), 60_000, tooLate)).rejects.toThrow(
    'refused',
  );
  expect(countTimers()).toBe(timersBefore);
  await expect(withDeadline(never, 1, tooLate)).rejects.toThrow('late');
  expect(await withDeadline(never, 1, () => 'left behind')).toBe('left behind');
});

test('work that fails after its deadline causes no unhandled rejection', async () => {
  let fail: (error: Error) => void = () => undefined;
  const work = new Promise<never>((_, reject) => {
    fail = reject;
  });
  expect(await withDeadline(work, 1, () => 'late')).toBe('late');
  fail(new Error('after the deadline'));
  // An unhandled rejection would end the process and fail this run of vitest.
  await new Promise(setImmediate);
});

test('a poll may ask for an earlier next poll than usual', async () => {
  let polls = 0;
  const poller = startPoller(3_600_000, async () => {
    polls++;
    return 1;
  });
  await waitFor('the second poll', () => polls > 1);
  await poller.stop();
});
