import { expect, test } from 'vitest';
import { createProbe } from '../../../src/telemetry/health/ready.ts';

/** A question whose answers the test gives. */
function question() {
  const answers: ((value: number | Error) => void)[] = [];
  const ask = () =>
    new Promise<number>((resolve, reject) => {
      answers.push((value) => (value instanceof Error ? reject(value) : resolve(value)));
    });
  return { ask, answers };
}

test('those who ask while an answer is outstanding share it, late or not', async () => {
  const { ask, answers } = question();
  const look = createProbe(ask, { deadlineMs: 20 });
  const late = await Promise.all([look(), look(), look()]);
  expect(late).toEqual(
    Array(3).fill({ error: expect.objectContaining({ message: 'no answer within 20 ms' }) }),
  );
  const next = look();
  expect(answers).toHaveLength(1);
  answers[0]?.(7);
  expect(await next).toEqual({ value: 7 });
  // It is not kept.
  void look();
  expect(answers).toHaveLength(2);
});

test('an answer is kept for as long as it is said to be, by how long it took and whether it failed', async () => {
  const { ask, answers } = question();
  const seen: boolean[] = [];
  const look = createProbe(ask, {
    deadlineMs: 1_000,
    keepMs: (_tookMs, failed) => {
      seen.push(failed);
      return failed ? 0 : 60_000;
    },
  });
  const broken = look();
  answers[0]?.(new Error('away'));
  expect(await broken).toEqual({ error: new Error('away') });
  const good = look();
  answers[1]?.(2);
  expect([await good, await look(), answers.length]).toEqual([{ value: 2 }, { value: 2 }, 2]);
  expect(seen).toEqual([true, false]);
});
