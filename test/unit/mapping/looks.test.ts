import { expect, test } from 'vitest';
import { lookOf } from '../../../src/load/map/looks.ts';

test.each([
  ['email', ['ada@example.com', 'bob@example.org']],
  ['phone', ['+43 660 1234567', '+1 (415) 555-2671']],
  ['ip', ['203.0.113.7', '2001:db8::1']],
  [
    'card',
    ['4111 1111 1111 1111', '5500-0000-0000-0004', '340000000000009', '6011000000000004', '4012888888881881'],
  ],
  [null, ['4111111111111111']],
  [null, ['ada@example.com', 'bob', 'eve']],
  [null, ['06601234567', '1.2', '12:30', '4111111111111112']],
  [null, []],
])('%s is recognised in the values %j', (look, values) => {
  expect(lookOf(values)).toBe(look);
});
