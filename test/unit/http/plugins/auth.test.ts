import { expect, test } from 'vitest';
import { TransientError } from '../../../../src/domain/errors.ts';
import { inTime } from '../../../../src/http/plugins/auth.ts';

test('an answer that never comes is an error that may pass; one that comes, or fails, is as it is', async () => {
  await expect(inTime(new Promise<never>(() => undefined), 20)).rejects.toBeInstanceOf(TransientError);
  expect(await inTime(Promise.resolve(7), 20)).toBe(7);
  await expect(inTime(Promise.reject(new Error('refused')), 20)).rejects.toThrow('refused');
});
