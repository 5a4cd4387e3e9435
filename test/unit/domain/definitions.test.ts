import fc from 'fast-check';
import { expect, it } from 'vitest';
import { displayName } from '../../../src/domain/definitions.ts';

it.each([
  ['plan', 'Plan'],
  ['support_tier', 'Support Tier'],
  ['monthlyActiveUsers', 'Monthly Active Users'],
  ['utm.campaign-name', 'Utm Campaign Name'],
  ['APIKey', 'API Key'],
  ['  spaced__out  ', 'Spaced Out'],
  ['straßenName', 'Straßen Name'],
  ['会社名', '会社名'],
  ['𐐨_deseret', '𐐀 Deseret'],
  ['___', '"___"'],
])('the display name of %j is %j', (key, name) => {
  expect(displayName(key)).toBe(name);
});

it('a display name is never empty, splits no character, and keeps all letters', () => {
  const letters = (text: string) => text.toUpperCase().replaceAll(/[^\p{L}]/gu, '');
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (key) => {
      const name = displayName(key);
      expect(name.trim()).not.toBe('');
      expect(name.isWellFormed()).toBe(true);
      if (!name.startsWith('"')) expect(letters(name)).toBe(letters(key));
    }),
  );
});
