import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type CellType, cellTypes, isIsoDate, readCellType } from '../../../src/domain/data-type.ts';
import { readTyped, typesOf } from '../../../src/load/map/cell-types.ts';
import { runs } from '../../support/runs.ts';

const readCell = (type: CellType, text: string): string | null => {
  const cell = readTyped(type, text, 'Column');
  return 'code' in cell ? null : cell.text;
};

// proves: typed-columns
test.each([
  [
    'number',
    { '007': '7', ' 12 ': '12', '-1,234.50': '-1234.50', '1 234 567': '1234567', '+5': '5', '1e3': '1e3' },
  ],
  [
    'number',
    {
      '1,5': null,
      '12,34': null,
      '1,234 567': null,
      '': '',
      ' ': '',
      abc: null,
      '1.': null,
      '1e99999': null,
    },
  ],
  ['decimal_comma', { '1,5': '1.5', '1.234,5': '1234.5', "1'234": '1234', '1.5': null, '-0,10': '-0.10' }],
  [
    'boolean',
    { Yes: 'true', '0': 'false', TRUE: 'true', off: 'false', ja: null, '2': null, constructor: null },
  ],
  [
    'date',
    { '2026-02-28': '2026-02-28', '2026/2/8': '2026-02-08', '8 Feb 2026': '2026-02-08', '01/02/03': null },
  ],
  [
    'date',
    {
      '2026-02-30': null,
      '2026-02-28 12:30': '2026-02-28T12:30:00',
      '2026-02-28T12:30Z': '2026-02-28T12:30Z',
      'Tue, 3 Feb 2026 10:00:00 +0200': '2026-02-03T10:00:00+02:00',
    },
  ],
  [
    'day_first',
    {
      '1/2/2026': '2026-02-01',
      '31.12.26': '2026-12-31',
      '5.4.84': '1984-04-05',
      '2026-02-01': '2026-02-01',
      '12/31/2026': null,
    },
  ],
  [
    'month_first',
    { '1/2/2026': '2026-01-02', '12/31/2026 1:05 pm': '2026-12-31T13:05:00', '31/12/2026': null },
  ],
] as const)('a cell of a column of type %s is stored or refused: %j', (type, cells) => {
  for (const [text, value] of Object.entries(cells))
    expect([text, readCell(type, text)]).toEqual([text, value]);
});

test('a number keeps its value with any grouping of its digits', () => {
  const group = fc.constantFrom(',', ' ', "'", '');
  fc.assert(
    fc.property(fc.integer({ min: -1e9, max: 1e9 }), fc.nat(999), group, (integer, part, mark) => {
      const text = `${String(integer).replace(/\B(?=(?:\d{3})+$)/g, mark)}.${part}`;
      expect(Number(readCell('number', text))).toBe(Number(`${integer}.${part}`));
    }),
  );
});

test('an accepted date is an ISO date, and an accepted number is JSON', () => {
  fc.assert(
    fc.property(fc.constantFrom(...cellTypes), fc.stringMatching(/^[\d ./:,'+eT-]{0,14}$/), (type, text) => {
      const value = readCell(type, text);
      if (value === null || value === '') return;
      if (type.endsWith('first') || type === 'date') expect(isIsoDate(value)).toBe(true);
      else JSON.parse(value);
    }),
    { numRuns: runs(1_000) },
  );
});

test.each([
  [
    ['1', '2,000'],
    ['number', 'decimal_comma'],
  ],
  [['1,5'], ['decimal_comma']],
  [
    ['0', '1'],
    ['number', 'decimal_comma', 'boolean'],
  ],
  [['yes', 'No'], ['boolean']],
  [
    ['1/2/2026', '3/4/2026'],
    ['day_first', 'month_first'],
  ],
  [['1/2/2026', '13/4/2026'], ['day_first']],
  [['2026-01-02'], ['date', 'day_first', 'month_first']],
  [['007'], []],
  [['+43660123'], []],
  [['Ann'], []],
  [[], []],
])('the possible types of the texts %j are %j', (texts, types) => {
  expect(typesOf(texts)).toEqual(types);
});

test.each([
  ['Seats=number', ['Seats', 'number']],
  ['a=b = day_first', ['a=b', 'day_first']],
  ['Seats=integer', undefined],
  ['=number', undefined],
  ['number', undefined],
])('the type of a column is read from %j', (text, pair) => {
  expect(readCellType(text)).toEqual(pair);
});
