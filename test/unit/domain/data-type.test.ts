import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type DataType,
  dataTypeOf,
  dataTypes,
  isIsoDate,
  resemblesIsoDate,
  widen,
} from '../../../src/domain/data-type.ts';
import { runs } from '../../support/runs.ts';

it.each<[unknown, DataType | null]>([
  [1, 'numeric'],
  [-0.5, 'numeric'],
  [false, 'boolean'],
  ['', 'string'],
  ['1', 'string'],
  ['true', 'string'],
  ['2024-02-29', 'date'],
  ['2024-02-29T10:00:00Z', 'date'],
  [{}, 'string'],
  [['2024-02-29'], 'string'],
  [null, null],
  [undefined, null],
])('the type of %j is %s', (value, type) => {
  expect(dataTypeOf(value)).toBe(type);
});

it('every JSON value except null has a type', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect([...dataTypes, null]).toContain(dataTypeOf(value));
      expect(dataTypeOf(value) === null).toBe(value === null);
    }),
  );
});

describe('the widening of types', () => {
  const type = fc.constantFrom(...dataTypes);

  it('the widened type does not depend on the order of the values', () => {
    fc.assert(
      fc.property(type, type, type, (a, b, c) => {
        expect(widen(a, b)).toBe(widen(b, a));
        expect(widen(a, widen(b, c))).toBe(widen(widen(a, b), c));
      }),
    );
  });

  it('two equal types stay the same, and two different types widen to string', () => {
    fc.assert(fc.property(type, type, (a, b) => widen(a, b) === (a === b ? a : 'string')));
  });
});

const pad = (number: number, digits = 2) => String(number).padStart(digits, '0');
const year = fc.integer({ min: 0, max: 9_999 });
const clock = fc
  .tuple(fc.integer({ min: 0, max: 23 }), fc.integer({ min: 0, max: 59 }))
  .map(([hour, minute]) => `${pad(hour)}:${pad(minute)}`);
const seconds = fc.oneof(
  fc.constant(''),
  fc.integer({ min: 0, max: 59 }).map((second) => `:${pad(second)}`),
  fc
    .tuple(fc.integer({ min: 0, max: 59 }), fc.stringMatching(/^\d{1,9}$/))
    .map(([second, fraction]) => `:${pad(second)}.${fraction}`),
);
const zone = fc.oneof(
  fc.constantFrom('', 'Z'),
  clock.chain((offset) => fc.constantFrom(`+${offset}`, `-${offset}`)),
);

describe('an ISO date', () => {
  it('every day of the calendar is an ISO date, and no other day is', () => {
    const day = fc.tuple(year, fc.integer({ min: 0, max: 13 }), fc.integer({ min: 0, max: 32 }));
    fc.assert(
      fc.property(day, ([y, m, d]) => {
        const date = new Date(0);
        date.setUTCFullYear(y, m - 1, d);
        const exists = date.getUTCFullYear() === y && date.getUTCMonth() === m - 1 && date.getUTCDate() === d;
        expect(isIsoDate(`${pad(y, 4)}-${pad(m)}-${pad(d)}`)).toBe(exists);
      }),
      { numRuns: runs(2_000) },
    );
  });

  it('every time of day is accepted, with or without seconds, fraction and zone', () => {
    fc.assert(
      fc.property(clock, seconds, zone, (time, fraction, offset) => {
        expect(isIsoDate(`2024-02-29T${time}${fraction}${offset}`)).toBe(true);
      }),
    );
  });

  it.each([
    ...'2023-02-29 2024-1-1 2024-01-01T10 2024-01-01T24:00 2024-01-01T10:00:60 2024-01-01T10:00:00,5'.split(
      ' ',
    ),
    ...'2024-01-01T10:00z 2024-01-01T10:00+24:00 +12024-01-01 ٢٠٢٤-٠١-٠١'.split(' '),
    ...['2024-01-01 ', '2024-01-01 10:00', '2024-01-01\n'],
  ])('%j is refused as an ISO date', (text) => {
    expect(isIsoDate(text)).toBe(false);
  });

  it('every ISO date resembles one, and unlike texts do not', () => {
    const near = fc.stringMatching(/^[0-9T:Z.+-]{0,26}$/);
    fc.assert(fc.property(near, (text) => !isIsoDate(text) || resemblesIsoDate(text)));
    expect(['n/a', 'unknown date', '1.2.2024', '2024-01-01 10:00', ''].filter(resemblesIsoDate)).toEqual([]);
  });
});
