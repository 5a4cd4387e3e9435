import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PersonalProperties } from '../../../src/capabilities/personal/personal.ts';
import { PersonalValues, personalActions } from '../../../src/capabilities/personal/values.ts';
import { markNumber } from '../../../src/formats/json-text.ts';

const values = new PersonalValues(Buffer.alloc(32, 1));

describe('a personal value', () => {
  test('stays as it is when an action is applied to it twice', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(...personalActions), (value, action) => {
        const once = values.change(action, value);
        if (once !== undefined) expect(values.change(action, once)).toEqual(once);
      }),
    );
  });

  test('has the same hash as a number and as a text, and another one with another key', () => {
    const other = new PersonalValues(Buffer.alloc(32, 2));
    expect(values.hash('ada@example.com')).toMatch(/^hash:[\w-]{43}$/);
    expect(values.change('hash', 42)).toBe(values.change('hash', '42'));
    expect(other.hash('42')).not.toBe(values.hash('42'));
  });

  test('that is null removes its property and stays null', () => {
    for (const action of personalActions) expect(values.change(action, null)).toBeNull();
  });

  test('is not shown without a key', () => {
    expect(new PersonalValues(null).change('hash', 'ada')).toBe('(hash)');
  });
});

describe('a personal property', () => {
  const properties = new PersonalProperties(
    {
      email: { personal: 'drop' },
      'address.street': { personal: 'drop' },
      ip: { personal: 'hash' },
      plan: {},
    },
    values,
  );

  test('is a member of objects and lists by its path, or a property that has the path as its name', () => {
    const changed = properties.changeAll({
      email: 'a@b.c',
      plan: 'pro',
      address: [{ street: 'Main', city: 'Wien' }, 'none'],
      'address.street': 'Main',
      'email.work': 'a@b.c',
      'email2.work': 'x',
      ip: '203.0.113.77',
    });
    expect(changed).toEqual({
      plan: 'pro',
      address: [{ city: 'Wien' }, 'none'],
      'email2.work': 'x',
      ip: values.hash('203.0.113.77'),
    });
  });

  test.each([
    ['{"street":"Main","city":"Wien","since":1.50}', { city: 'Wien', since: markNumber('1.50') }],
    [' [{"street":"Main"},"none"]', [{}, 'none']],
    ['{"street":"Main"', undefined],
    ["{'street': 'Main'}", undefined],
    ['Main', 'Main'],
  ])(
    'is found in an object that comes as the text %s, which is left out if it cannot be read',
    (text, stored) => {
      expect(properties.change('address', text)).toEqual(stored);
    },
  );
});
