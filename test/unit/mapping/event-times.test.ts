import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readEpoch } from '../../../src/base/instant.ts';
import { EventTimes } from '../../../src/load/map/event-checks.ts';

const times = new EventTimes();
const writtenLength = 'YYYY-MM-DDTHH:MM:SS.ffffffZ'.length;

/**
 * Lets `copyEpoch` copy the text, which has other bytes before and after it. Returns the copy, or
 * `null` if the result is NaN.
 */
function copied(text: string): { readonly text: string; readonly ms: number } | null {
  const target = Buffer.alloc(writtenLength + 2);
  const ms = times.copyEpoch(Buffer.from(`:${text},`), 1, 1 + text.length, target, 1);
  expect([target[0], target.at(-1)]).toEqual([0, 0]);
  return Number.isNaN(ms) ? null : { text: target.toString('latin1', 1, 1 + writtenLength), ms };
}

test('a number of seconds or milliseconds is copied as the slow reader of times reads it', () => {
  const numbers = fc.oneof(
    fc.integer({ min: 1e9, max: 9_999_999_999 }),
    fc.integer({ min: 1e12, max: 9_999_999_999_999 }),
  );
  fc.assert(
    fc.property(numbers, (number) => {
      expect(copied(String(number))).toEqual(readEpoch(String(number)));
    }),
  );
});

test.each([
  '177009150',
  '17700915061',
  '1770091506.5',
  '177009150612345',
  '1.77009e9',
  '-177009150',
  '0770091506',
])('the time %s is left to the slow reader', (text) => expect(copied(text)).toBeNull());
