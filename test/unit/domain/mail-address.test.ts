import { expect, test } from 'vitest';
import { isMailAddress } from '../../../src/base/mail-address.ts';

test.each([
  'ada@example.com',
  'a.b+c@mail.example.co',
  "o'neil@example.com",
  'sluice@localhost',
  'x-y@a-b.io',
])('%s is accepted as a plain mail address', (address) => {
  expect(isMailAddress(address)).toBe(true);
});

test.each([
  // A mail program would take this address for an option.
  '-oQ/tmp@x.y',
  '-f@example.com',
  'a@b',
  'ada',
  '@example.com',
  'ada@',
  'ada@.com',
  'ada@example.',
  'ada@-x.com',
  'Ada <ada@example.com>',
  'a@x.com,b@x.com',
  'a\r\nBcc:b@x.com',
  '"a b"@x.com',
  'ada@[127.0.0.1]',
  '=?utf-8?q?a?=@x.com',
  `${'a'.repeat(65)}@x.com`,
  `a@${'b'.repeat(64)}.com`,
])('%j is refused as a mail address', (address) => {
  expect(isMailAddress(address)).toBe(false);
});
