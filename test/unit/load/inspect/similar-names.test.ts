import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SimilarNames } from '../../../../src/load/inspect/similar-names.ts';

const names = new SimilarNames(['signup_date', 'plan', 'address 1', 'seats']);

test.each([
  ['Sign-up Date', 'signup_date'],
  ['PLAN', 'plan'],
  ['singup_date', 'signup_date'],
  ['signup_dates', 'signup_date'],
  ['plans', 'plan'],
  ['pla', null],
  ['address 2', null],
  ['Adress 1', 'address 1'],
  ['plan', null],
  ['', null],
  ['–', null],
])('of the name %j the similar known one is %j', (name, similar) => {
  expect(names.of(name)).toBe(similar);
});

test('a name with one letter missing, added or replaced is similar to the name', () => {
  const letters = fc.stringMatching(/^[a-z]{6,20}$/);
  const edit = fc.record({ at: fc.nat(), cut: fc.constantFrom(0, 1), put: fc.constantFrom('', 'q') });
  fc.assert(
    fc.property(letters, edit, (known, { at, cut, put }) => {
      const place = at % known.length;
      const name = known.slice(0, place) + put + known.slice(place + cut);
      expect(new SimilarNames([known]).of(name)).toBe(name === known ? null : known);
    }),
  );
});
