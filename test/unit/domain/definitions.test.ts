import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { displayName } from '../../../src/domain/definitions.ts';

describe('displayName', () => {
  it.each([
    ['plan', 'Plan'],
    ['subscription_tier', 'Subscription Tier'],
    ['first_seen_at', 'First Seen At'],
    ['monthlyActiveUsers', 'Monthly Active Users'],
    ['Signed up at', 'Signed Up At'],
    ['utm.campaign-name', 'Utm Campaign Name'],
    ['APIKey', 'API Key'],
    ['userID', 'User ID'],
    ['address2', 'Address2'],
    ['v2Beta', 'V2 Beta'],
    ['  spaced__out  ', 'Spaced Out'],
    ['straßenName', 'Straßen Name'],
    ['élan_vital', 'Élan Vital'],
    ['размерКоманды', 'Размер Команды'],
    ['会社名', '会社名'],
    ['🎉_party', '🎉 Party'],
    ['𐐨_deseret', '𐐀 Deseret'],
    ['___', '"___"'],
    ['', '""'],
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

  it('of a display name is itself', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z]{1,8}(_[a-z]{1,8}){0,3}$/), (key) => {
        expect(displayName(displayName(key))).toBe(displayName(key));
      }),
    );
  });
});
