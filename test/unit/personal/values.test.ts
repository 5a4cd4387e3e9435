import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { personalActions } from '../../../src/domain/rules.ts';
import { markNumber } from '../../../src/formats/json-text.ts';
import { PersonalProperties } from '../../../src/personal/properties.ts';
import { truncate } from '../../../src/personal/truncate.ts';
import { PersonalValues } from '../../../src/personal/values.ts';
import { environmentKeys, readPersonalKeys } from '../../../src/personal-keys.ts';

const key = (byte: number) => Buffer.alloc(32, byte).toString('base64');
const valuesOf = (text: string, secret = 'environment one') =>
  new PersonalValues(environmentKeys(readPersonalKeys(text) ?? new Map(), secret));
const old = `a:${key(1)}`;
const rotated = `b:${key(2)},a:${key(1)}`;

describe('keys', () => {
  test.each([
    'a',
    'a:',
    `a:${key(1).slice(4)}`,
    `A:${key(1)}`,
    `a:${key(1)},a:${key(2)}`,
    `a:${randomBytes(33).toString('base64')}`,
  ])('%s is refused', (text) => {
    expect(readPersonalKeys(text)).toBeNull();
  });

  test('commas and line ends separate keys, and none at all are no keys', () => {
    expect([...(readPersonalKeys(`b:${key(2)}\na:${key(1)}\n`) ?? []).keys()]).toEqual(['b', 'a']);
    expect(environmentKeys(readPersonalKeys('') ?? new Map(), 's')).toBeNull();
  });
});

describe('values', () => {
  test('every action applied twice changes nothing the second time', () => {
    const values = valuesOf(rotated);
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(...personalActions), (value, action) => {
        const once = values.change(action, value, false);
        if (once !== undefined) expect(values.change(action, once, false)).toEqual(once);
      }),
    );
  });

  test('an encrypted value is decrypted to what it was, also in JSON and by the key of its time', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        if (value === null) return;
        const text = String(valuesOf(old).change('encrypt', value, false));
        expect(text).toMatch(/^enc:a:[\w-]{16}:[\w-]+$/);
        const later = valuesOf(rotated);
        expect(later.decrypt(text)).toBe(typeof value === 'string' ? value : JSON.stringify(value));
        const json = JSON.stringify({ within: [text], text: `not ${text}` });
        expect(JSON.parse(later.decryptJson(json))).toEqual({
          within: [JSON.parse(JSON.stringify(value))],
          text: `not ${text}`,
        });
      }),
    );
  });

  test('a value is encrypted with the first key and hashed with the last, the same each time', () => {
    const [before, after] = [valuesOf(old), valuesOf(rotated)];
    expect(after.change('encrypt', 'ada@example.com', false)).toMatch(/^enc:b:/);
    expect(after.change('encrypt', 'ada@example.com', false)).toBe(
      valuesOf(rotated).change('encrypt', 'ada@example.com', false),
    );
    expect(after.hash('ada@example.com')).toBe(before.hash('ada@example.com'));
    expect(after.change('hash', 42, false)).toBe(after.change('hash', '42', false));
  });

  test('a value of one environment has another hash in the next, and is not decrypted there', () => {
    const [one, two] = [valuesOf(old), valuesOf(old, 'environment two')];
    expect(one.hash('a')).not.toBe(two.hash('a'));
    const text = String(one.change('encrypt', 'a', false));
    expect(two.decrypt(text)).toBe(text);
  });

  test('a text that only looks encrypted is encrypted', () => {
    const values = valuesOf(old);
    const forged = `enc:a:${'A'.repeat(16)}:${'A'.repeat(40)}`;
    const text = String(values.change('encrypt', forged, false));
    expect(text).not.toBe(forged);
    expect(values.decrypt(text)).toBe(forged);
  });

  test('null removes a property and stays null', () => {
    for (const action of personalActions) expect(valuesOf(old).change(action, null, false)).toBeNull();
  });

  test('without keys nothing of a value is shown', () => {
    const values = new PersonalValues(null);
    expect(values.change('hash', 'ada', false)).toBe('(hash)');
    expect(values.change('encrypt', 'ada', false)).toBe('(encrypt)');
  });

  test('numbers keep their digits', () => {
    const values = valuesOf(old);
    expect(values.decryptJson(JSON.stringify([values.change('encrypt', 1.5, false)]))).toBe('[1.5]');
  });
});

test.each([
  ['203.0.113.77', '203.0.113.0/24'],
  ['::ffff:203.0.113.77', '203.0.113.0/24'],
  ['2001:db8:1:2::5', '2001:db8:1::/48'],
  ['fe80::1%eth0', 'fe80::/48'],
  ['1987-05-12', '1987'],
  ['1987-05-12T10:00:00Z', '1987'],
  ['12.05.1987', '1987'],
  ['5/12/1987', '1987'],
  ['19870512', '1987'],
  ['1987', '1987'],
  ['SW1A 1AA', 'SW1A'],
  ['sw1a1aa', 'SW1A'],
  ['K1A 0B1', 'K1A'],
  ['D02 AF30', 'D02'],
  ['94110-1234', '941'],
  ['10115', '101'],
  ['1234 AB', '12'],
  ['CH-8001', '80'],
  ['100-0001', '100'],
  ['ada@example.com', null],
  ['+43 660 1234567', null],
  ['4155551234', null],
  ['123-45-6789', null],
  ['Ada', null],
  ['', null],
])('%s is truncated to %s', (text, short) => {
  expect(truncate(text)).toBe(short);
});

describe('properties', () => {
  const properties = new PersonalProperties(
    {
      email: { personal: 'drop' },
      'address.street': { personal: 'drop' },
      ip: { personal: 'truncate' },
      plan: {},
    },
    valuesOf(old),
  );

  test('members of objects and lists count by their path, and a property may bear the path as its name', () => {
    const changed = properties.changeAll({
      email: 'a@b.c',
      plan: 'pro',
      address: [{ street: 'Main', city: 'Wien' }, 'none'],
      'address.street': 'Main',
      'email.work': 'a@b.c',
      'email2.work': 'x',
      ip: { last: '203.0.113.77', all: ['203.0.113.77', 'x'], note: 'x' },
    });
    expect(changed).toEqual({
      plan: 'pro',
      address: [{ city: 'Wien' }, 'none'],
      'email2.work': 'x',
      ip: { last: '203.0.113.0/24', all: ['203.0.113.0/24'] },
    });
  });

  test.each([
    ['{"street":"Main","city":"Wien","since":1.50}', { city: 'Wien', since: markNumber('1.50') }],
    [' [{"street":"Main"},"none"]', [{}, 'none']],
    ['{"street":"Main"', undefined],
    ["{'street': 'Main'}", undefined],
    ['Main', 'Main'],
  ])(
    'an object that comes as the text %s is one, and one that cannot be read is left out',
    (text, stored) => {
      expect(properties.change('address', text)).toEqual(stored);
    },
  );
});
