import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { EARLIEST_EVENT } from '../../../../src/domain/limits.ts';
import { readMendId, writeReplacementId } from '../../../../src/load/causes/mend-ids.ts';
import { mendsOf } from '../../../../src/load/causes/mends.ts';
import { RefusedCsv } from '../../../../src/load/rejects-text.ts';
import { EventTimes } from '../../../../src/mapping/event-rules.ts';

const times = new EventTimes();
times.reset('2026-11-20T00:00:00.000000Z');
const accepts = (text: string) => !('code' in times.read(text, 'inserted_at'));

const latest = Date.UTC(2026, 10, 20);
const instant = fc.integer({ min: EARLIEST_EVENT, max: latest }).chain((ms) => {
  const iso = new Date(ms).toISOString();
  return fc.constantFrom(
    iso,
    iso.slice(0, 10),
    iso.slice(0, 19).replace('T', ' '),
    String(ms),
    String(ms / 1000),
  );
});
const timeLike = fc.oneof(
  instant,
  fc
    .tuple(fc.nat(40), fc.constantFrom('/', '-', '.', ' '), fc.nat(40), fc.nat(2100))
    .map(([a, mark, b, year]) => `${a}${mark}${b}${mark}${year}`),
  fc.nat().map(String),
  fc.string(),
);

describe('a mend', () => {
  // proves: causes-exact
  test('of a time never changes one that a load takes', () => {
    fc.assert(
      fc.property(timeLike, (text) => {
        if (!accepts(text)) return;
        const before = times.read(text, 'inserted_at');
        for (const { value } of mendsOf('invalid_date')) {
          const after = value?.(text) ?? null;
          if (after !== null && accepts(after)) expect(times.read(after, 'inserted_at')).toEqual(before);
        }
      }),
    );
  });

  // proves: causes-exact
  test('of the number of cells never changes a record that has as many as there are columns', () => {
    const cell = fc.string({ unit: fc.constantFrom('a', ' ', '1', ';', '|', '\\', '-') });
    const counted = mendsOf('wrong_field_count').filter(({ name }) => !name.includes('quotes'));
    const readings = new RefusedCsv({ columns: ['a', 'b', 'c'], delimiter: ',' });
    fc.assert(
      fc.property(fc.array(cell, { minLength: 3, maxLength: 3 }), (cells) => {
        for (const { cells: mend } of counted) {
          const after = mend?.(Buffer.from(cells.join(',')), readings, 1) ?? null;
          if (after !== null) expect(after).toEqual(cells);
        }
      }),
    );
  });

  // proves: replacement
  test('that replaces a text gives the text as it was meant, whatever stands in it, and its id says all of it', () => {
    const readings = new RefusedCsv({ columns: ['a', 'b', 'c'], delimiter: ',' });
    const plain = fc.string({ unit: fc.constantFrom('a', ' ', '$', '&', "'", '`', 'é', '{row}', '-') });
    fc.assert(
      fc.property(fc.tuple(plain, plain, plain), plain, plain, (cells, find, by) => {
        const id = writeReplacementId({ cause: 0xabc, column: 'b', find, by });
        const { cause, mend } = readMendId(id);
        expect(cause).toBe(0xabc);
        const after = mend.cells?.(Buffer.from(cells.join(',')), readings, 41) ?? cells;
        const meant = by.split('{row}').join('41');
        const [a, b, c] = cells;
        const filled = b === '' ? meant : b;
        expect(after).toEqual([a, find === '' ? filled : b.split(find).join(meant), c]);
      }),
    );
  });
});
