import { expect, test } from 'vitest';
import {
  forbiddenAddress,
  guardedLookup,
  isAllowed,
  requireAllowedHost,
} from '../../../src/base/http-client.ts';

const isForbidden = expect.objectContaining({ code: forbiddenAddress });

const judge = (address: string) => [
  isAllowed(address, 'public'),
  isAllowed(address, 'private'),
  isAllowed(address, 'any'),
];

test.each(['8.8.8.8', '93.184.216.34', '2606:4700::1111', '::ffff:8.8.8.8'])(
  'the address %s is public',
  (address) => {
    expect(judge(address)).toEqual([true, false, true]);
  },
);

test.each([
  ...['127.0.0.1', '127.8.9.10', '10.0.0.1', '10.1.2.3', '172.16.0.1', '172.31.0.1', '192.168.1.1'],
  ...'100.64.0.1 ::1 fc00::1 fd00::1 fd00:ec2::254 ::ffff:127.0.0.1 ::ffff:a00:1 ::127.0.0.1'.split(' '),
])('the address %s of a private network is allowed only with private networks', (address) => {
  expect(judge(address)).toEqual([false, true, true]);
});

test.each([
  ...['169.254.169.254', '0.0.0.0', '224.0.0.1', '255.255.255.255', '240.0.0.1', '192.0.2.1', '198.18.0.1'],
  ...['192.0.0.8', '::', 'fe80::1', 'fe80::1%eth0', 'fe80::1%lo', 'fec0::1', 'ff02::1', '2001:db8::1'],
  // IPv4 addresses in various IPv6 forms: mapped, compatible, translated, 6to4 and Teredo.
  ...['::ffff:169.254.169.254', '::ffff:a9fe:a9fe', '::a9fe:a9fe', '64:ff9b::7f00:1', '2002:7f00:1::'],
  ...['2001::1', '', 'localhost', 'example.com', '1.2.3.4.5', '999.1.1.1'],
])('the address %j is never allowed', (address) => {
  expect(judge(address)).toEqual([false, false, false]);
});

test.each(['127.0.0.1', '[::1]', '[::ffff:7f00:1]', '169.254.169.254'])('%s is refused as a host', (host) => {
  expect(() => requireAllowedHost(host, 'public')).toThrow(isForbidden);
});

test('unusual spellings of an address in a URL are recognised', () => {
  for (const url of ['http://2130706433/', 'http://0x7f.1/', 'http://0177.0.0.1/', 'http://127.1/']) {
    expect(() => requireAllowedHost(new URL(url).hostname, 'public'), url).toThrow(isForbidden);
  }
  expect(() => requireAllowedHost('example.com', 'public')).not.toThrow();
  expect(() => requireAllowedHost('127.0.0.1', 'any')).not.toThrow();
  expect(() => requireAllowedHost('169.254.169.254', 'any')).toThrow(isForbidden);
});

test('a name that resolves to a private address is refused', async () => {
  for (const options of [{ all: true }, { all: false }, { family: 4, all: true }] as const) {
    const error = await new Promise((resolve) => {
      guardedLookup('public')('localhost', options, (failure) => resolve(failure));
    });
    expect(error).toEqual(isForbidden);
  }
  const resolved = await new Promise((resolve) => {
    guardedLookup('any')('localhost', { all: false }, (_, address) => resolve(address));
  });
  expect(['127.0.0.1', '::1']).toContain(resolved);
});
