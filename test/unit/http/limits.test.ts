import { expect, test } from 'vitest';
import { FailedLogins } from '../../../src/http/plugins/limits.ts';

let nowMs = 0;
const start = () => {
  nowMs = 0;
  return new FailedLogins(() => nowMs);
};

/**
 * Makes `guesses` guesses. Guess number n comes from the address `address(n)`. Returns how many of
 * them the service would compare with a key.
 */
function guess(logins: FailedLogins, guesses: number, address: (n: number) => string): number {
  let compared = 0;
  for (let n = 0; n < guesses; n++) {
    if (logins.wait(address(n)) > 0) continue;
    compared++;
    logins.failed(address(n));
  }
  return compared;
}

test('one address may guess ten times a minute', () => {
  const logins = start();
  expect(guess(logins, 40, () => '192.0.2.1')).toBe(10);
  expect(logins.wait('192.0.2.1')).toBe(60);
  expect(logins.wait('192.0.2.2')).toBe(0);
  nowMs += 60_000;
  expect(logins.wait('192.0.2.1')).toBe(0);
});

test('one IPv6 network counts as one address', () => {
  const logins = start();
  expect(guess(logins, 40, (n) => `2001:db8:0:1::${n}`)).toBe(10);
  expect(logins.wait('2001:db8:0:2::1')).toBe(0);
  expect(logins.wait('2001:db8:0:1:ffff::')).toBeGreaterThan(0);
});

test('an IPv4 address counts as the same address on an IPv6 socket', () => {
  const logins = start();
  expect(guess(logins, 40, (n) => (n % 2 === 0 ? '::ffff:192.0.2.1' : '192.0.2.1'))).toBe(10);
  expect(logins.wait('::ffff:192.0.2.2')).toBe(0);
});

test('the guesses of an address are remembered after 20,000 from other addresses', () => {
  const logins = start();
  guess(logins, 10, () => '192.0.2.1');
  guess(logins, 20_000, (n) => `10.0.${n >> 8}.${n & 255}`);
  expect(logins.wait('192.0.2.1')).toBe(60);
});
