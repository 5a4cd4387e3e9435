import fc from 'fast-check';
import { expect, test } from 'vitest';
import { defuse, undoDefuse } from '../../../src/base/formula.ts';
import { hazardousText } from '../../support/files/formulas.ts';
import { runs } from '../../support/runs.ts';

test('any defused cell is restored exactly', () => {
  fc.assert(
    fc.property(hazardousText, (cell) => {
      expect(undoDefuse(defuse(cell))).toBe(cell);
    }),
    { numRuns: runs(2_000) },
  );
});

test('a defused cell never begins as a formula of a spreadsheet', () => {
  fc.assert(
    fc.property(hazardousText, (cell) => {
      expect(defuse(cell)).not.toMatch(/^[=+\-@\t\r\n＝＋－＠](?!([0-9.eE+-]*)$)/);
    }),
    { numRuns: runs(2_000) },
  );
});

test.each([
  ['=1+1', "'=1+1"],
  ['\n=1', "'\n=1"],
  ['＝1', "'＝1"],
  ['＠a', "'＠a"],
  ["'=1", "''=1"],
  ["''-x", "'''-x"],
  ['-5', '-5'],
  ["'-5", "'-5"],
  ['＋5', "'＋5"],
  ["'tis", "'tis"],
  ["'", "'"],
  ['', ''],
  ['a=1', 'a=1'],
])('the cell %j is defused as %j', (cell, defused) => {
  expect(defuse(cell)).toBe(defused);
});
