import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  PersonalProperties,
  PersonalValues,
  personalActions,
} from '../../../src/capabilities/personal/personal.ts';
import { markNumber } from '../../../src/formats/json-text.ts';

const values = new PersonalValues(Buffer.alloc(32, 1));

describe('a personal value', () => {
  test('an action that is applied twice has no further effect', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(...personalActions), (value, action) => {
        const onceChanged = values.change(action, value);
        if (onceChanged !== undefined) expect(values.change(action, onceChanged)).toEqual(onceChanged);
      }),
    );
  });

  test('a hash is equal for a number and its text, and depends on the key', () => {
    const otherKey = new PersonalValues(Buffer.alloc(32, 2));
    expect(values.hash('ada@example.com')).toMatch(/^hash:[\w-]{43}$/);
    expect(values.change('hash', 42)).toBe(values.change('hash', '42'));
    expect(otherKey.hash('42')).not.toBe(values.hash('42'));
  });

  test('a null stays null, so that it removes its property', () => {
    for (const action of personalActions) expect(values.change(action, null)).toBeNull();
  });

  test('a value is hidden without a key', () => {
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

  test('a personal property is found at its path, or under a name that equals its path', () => {
    const changedProperties = properties.changeAll({
      email: 'a@b.c',
      plan: 'pro',
      address: [{ street: 'Main', city: 'Wien' }, 'none'],
      'address.street': 'Main',
      'email.work': 'a@b.c',
      'email2.work': 'x',
      ip: '203.0.113.77',
    });
    expect(changedProperties).toEqual({
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
  ])('a personal property in the text %s is changed, or omitted if unreadable', (text, storedValue) => {
    expect(properties.change('address', text)).toEqual(storedValue);
  });
});
