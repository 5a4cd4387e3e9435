import { expect, test } from 'vitest';
import { createProbe } from '../../../src/telemetry/health/ready.ts';

function question() {
  const answers: ((value: number | Error) => void)[] = [];
  const ask = () =>
    new Promise<number>((resolve, reject) => {
      answers.push((value) => (value instanceof Error ? reject(value) : resolve(value)));
    });
  return { ask, answers };
}

test('callers share an outstanding answer, even after their deadline', async () => {
  const { ask, answers } = question();
  const look = createProbe(ask, { deadlineMs: 20 });
  const answersAtDeadline = await Promise.all([look(), look(), look()]);
  expect(answersAtDeadline).toEqual(
    Array(3).fill({ error: expect.objectContaining({ message: 'no answer within 20 ms' }) }),
  );
  const next = look();
  expect(answers).toHaveLength(1);
  answers[0]?.(7);
  expect(await next).toEqual({ value: 7 });
  // The second call must start a new check, because the answer is not cached.
  void look();
  expect(answers).toHaveLength(2);
});

test('an answer is cached for the time that its duration and success allow', async () => {
  const { ask, answers } = question();
  const failures: boolean[] = [];
  const look = createProbe(ask, {
    deadlineMs: 1_000,
    keepMs: (_tookMs, failed) => {
      failures.push(failed);
      return failed ? 0 : 60_000;
    },
  });
  const failing = look();
  answers[0]?.(new Error('away'));
  expect(await failing).toEqual({ error: new Error('away') });
  const answering = look();
  answers[1]?.(2);
  expect([await answering, await look(), answers.length]).toEqual([{ value: 2 }, { value: 2 }, 2]);
  expect(failures).toEqual([true, false]);
});
