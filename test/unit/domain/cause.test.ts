import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MAX_SHAPE_CHARS } from '../../../src/base/limits.ts';
import { isNullWord, outlineOf, readCauseId, shapeOf, writeCauseId } from '../../../src/domain/reject.ts';

test.each([
  ['31/12/2026', '99/99/9999'],
  ['1/2/2026', '99/99/9999'],
  ['N/A', 'n/a'],
  [' NULL ', 'null'],
  ['', 'empty'],
  ['  \t', 'blanks'],
  ['ada@example.org', 'a@a.a'],
  ['Ada Lovelace of London', 'a'],
  ['12 500,25', '99 999,99'],
  ['2026-13-01T10:00:00Z', '9999-99-99T99:99:99Z'],
  ['1700000000', '9…'],
  ['f81d4fae-7dec-11d0', 'a9-a9-a9'],
  [' 2026', '␠9999'],
  ['Zoë 😀', 'a ¤'],
  ['-----', '-…'],
])('the shape of %j is %s', (value, shape) => {
  expect(shapeOf(value)).toBe(shape);
});

// proves: shapes
test('a shape is bounded and stable, and reveals no letter or digit of its value', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.string({ maxLength: 2_000 })), (value) => {
      for (const shape of [shapeOf(value), outlineOf(value)]) {
        expect(shape.length).toBeGreaterThan(0);
        expect(shape.length).toBeLessThanOrEqual(MAX_SHAPE_CHARS);
        expect(shape.isWellFormed()).toBe(true);
        expect(shape).not.toMatch(/\p{Cc}/u);
      }
      expect(shapeOf(value)).toBe(shapeOf(value));
      if (isNullWord(value) || value.trim() === '') return;
      expect(shapeOf(value).replaceAll('a', '').replaceAll('9', '')).not.toMatch(/[b-zA-SU-Y0-8]/);
    }),
  );
});

test('a cause id is read as it was written, and other texts are refused', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 2 ** 52 - 1 }), (cause) => {
      expect(readCauseId(writeCauseId(cause))).toBe(cause);
    }),
  );
  for (const text of ['', 'x', '0x00000000000', '00000000000000', ' 000000000000'])
    expect(readCauseId(text)).toBeNull();
});
