import { describe, expect, test } from 'vitest';
import {
  ForbiddenAddressError,
  guardedLookup,
  isPublicAddress,
  requirePublicHost,
} from '../../../src/net/guarded-lookup.ts';

describe('an address', () => {
  test.each(['8.8.8.8', '93.184.216.34', '2606:4700::1111', '::ffff:8.8.8.8'])('%s is public', (address) => {
    expect(isPublicAddress(address)).toBe(true);
  });

  test.each([
    ...['127.0.0.1', '0.0.0.0', '10.1.2.3', '172.16.0.1', '192.168.1.1', '169.254.169.254', '100.64.0.1'],
    ...['224.0.0.1', '255.255.255.255', '198.18.0.1', '192.0.2.1', '240.0.0.1', '192.0.0.8'],
    ...[
      '::',
      '::1',
      'fe80::1',
      'fe80::1%lo',
      'fc00::1',
      'fd00:ec2::254',
      'fec0::1',
      'ff02::1',
      '2001:db8::1',
    ],
    // IPv4 inside IPv6: mapped, compatible, translated, 6to4, Teredo.
    ...['::ffff:127.0.0.1', '::ffff:a9fe:a9fe', '::127.0.0.1', '64:ff9b::7f00:1', '2002:7f00:1::', '2001::1'],
    ...['', 'example.com', '999.1.1.1'],
  ])('%s is not', (address) => {
    expect(isPublicAddress(address)).toBe(false);
  });

  test.each(['127.0.0.1', '[::1]', '[::ffff:7f00:1]', '169.254.169.254'])('%s may not be a host', (host) => {
    expect(() => requirePublicHost(host)).toThrow(ForbiddenAddressError);
  });

  test('in the odd ways of writing that URLs allow is seen for what it is', () => {
    for (const written of ['http://2130706433/', 'http://0x7f.1/', 'http://0177.0.0.1/', 'http://127.1/']) {
      expect(() => requirePublicHost(new URL(written).hostname), written).toThrow(ForbiddenAddressError);
    }
    expect(() => requirePublicHost('example.com')).not.toThrow();
  });
});

test('a name that leads inside is not resolved', async () => {
  for (const options of [{ all: true }, { all: false }, { family: 4, all: true }] as const) {
    const error = await new Promise((resolve) => {
      guardedLookup('localhost', options, (failure) => resolve(failure));
    });
    expect(error).toBeInstanceOf(ForbiddenAddressError);
  }
});
