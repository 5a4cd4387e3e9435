import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { displayName } from '../../../src/domain/definitions.ts';

describe('displayName', () => {
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
  ])('of %j is %j', (key, shown) => {
    expect(displayName(key)).toBe(shown);
  });

  it('is never empty, never splits a character, and keeps all letters', () => {
    const letters = (text: string) => text.toUpperCase().replaceAll(/[^\p{L}]/gu, '');
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (key) => {
        const shown = displayName(key);
        expect(shown.trim()).not.toBe('');
        expect(shown.isWellFormed()).toBe(true);
        if (!shown.startsWith('"')) expect(letters(shown)).toBe(letters(key));
      }),
    );
  });
});
