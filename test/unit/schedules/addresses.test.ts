import { describe, expect, test } from 'vitest';
import { isAllowed } from '../../../src/schedules/sources/addresses.ts';

describe('an address', () => {
  test.each(['8.8.8.8', '2606:4700::1111', '::ffff:8.8.8.8'])('%s is public: allowed', (address) => {
    expect([isAllowed(address, false), isAllowed(address, true)]).toEqual([true, true]);
  });
  test.each([
    ...['127.0.0.1', '127.8.9.10', '10.0.0.1', '172.31.0.1', '192.168.1.1', '100.64.0.1', '::1', 'fd00::1'],
    ...['::ffff:127.0.0.1', '::ffff:a00:1'],
  ])('%s is of a network of our own: allowed if private ones are', (address) => {
    expect([isAllowed(address, false), isAllowed(address, true)]).toEqual([false, true]);
  });
  test.each([
    ...[
      '169.254.169.254',
      'fe80::1',
      'fe80::1%eth0',
      '0.0.0.0',
      '::',
      '224.0.0.1',
      'ff02::1',
      '255.255.255.255',
    ],
    ...['240.0.0.1', '192.0.2.1', '198.18.0.1', '2001:db8::1', '64:ff9b::7f00:1', '2002:7f00:1::', '2001::1'],
    ...['::ffff:169.254.169.254', 'fec0::1', '', 'localhost', '1.2.3.4.5'],
  ])('%j is never allowed', (address) => {
    expect([isAllowed(address, false), isAllowed(address, true)]).toEqual([false, false]);
  });
});
