import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type DataType, dataTypeOf, dataTypes, widen } from '../../../src/domain/data-type.ts';

describe('dataTypeOf', () => {
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
  ])('of %j is %s', (value, type) => {
    expect(dataTypeOf(value)).toBe(type);
  });

  it('gives every JSON value a type, and null alone none', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect([...dataTypes, null]).toContain(dataTypeOf(value));
        expect(dataTypeOf(value) === null).toBe(value === null);
      }),
    );
  });
});

describe('widen', () => {
  const type = fc.constantFrom(...dataTypes);

  it('does not depend on the order in which values come', () => {
    fc.assert(
      fc.property(type, type, type, (a, b, c) => {
        expect(widen(a, b)).toBe(widen(b, a));
        expect(widen(a, widen(b, c))).toBe(widen(widen(a, b), c));
      }),
    );
  });

  it('keeps a type that comes again, and makes string of two', () => {
    fc.assert(fc.property(type, type, (a, b) => widen(a, b) === (a === b ? a : 'string')));
  });
});
