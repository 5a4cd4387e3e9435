import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CellTable } from '../../../src/formats/csv-cell-table.ts';
import { type CsvDialect, marksOf, plainDialect } from '../../../src/formats/csv-dialect.ts';
import type { CsvHeader } from '../../../src/formats/csv-header.ts';
import { createCsvScanner } from '../../../src/formats/csv-scanner.ts';
import { EditedCsv } from '../../../src/load/edited-csv.ts';
import { RefusedCsv } from '../../../src/load/rejects-text.ts';

const columns = ['user_id', 'name', 'plan', 'note'];
const rfc = plainDialect({ delimiter: ',' });
const dialects: readonly Partial<CsvDialect>[] = [
  { quote: "'", escape: "'" },
  { escape: '\\' },
  { quote: '', escape: '\\', nulls: ['\\N'] },
  { quote: '', escape: '' },
  { delimiter: '||', nulls: ['NA', 'null'] },
  { delimiter: 'blanks' },
  { delimiter: ';', nulls: ['NA'], comment: '#' },
];
const headers: readonly CsvHeader[] = [
  ...[',', ';', '\t', '|'].map((delimiter) => ({ delimiter, columns })),
  ...dialects.map((dialect) => ({ delimiter: ',', columns, dialect: { ...rfc, ...dialect } })),
];

const pieces = [...'aä😀 ,;"\'\\\n\t#=', '007', 'NA', '\\N', '||', '""'];
const text = fc.array(fc.constantFrom(...pieces), { maxLength: 5 }).map((found) => found.join(''));

/** The cells as they are written, quotes and all. */
function writtenCells(header: CsvHeader, record: Buffer): string[] {
  const cells = new CellTable();
  const dialect = header.dialect ?? plainDialect(header);
  createCsvScanner(marksOf({ ...header, dialect }), undefined, cells).next(record, 0, record.length, true);
  return Array.from({ length: cells.count }, (_, at) => {
    const quote = (cells.flags[at] ?? 0) & 1;
    return record.toString('utf8', (cells.starts[at] ?? 0) - quote, (cells.ends[at] ?? 0) + quote);
  });
}

/** Records as people write them: quoted where the quote of the dialect is among the pieces. */
const cases = fc
  .record({ header: fc.constantFrom(...headers), cells: fc.array(text, { minLength: 1, maxLength: 4 }) })
  .chain(({ header, cells }) => {
    const { delimiter, quote, escape: marks } = header.dialect ?? plainDialect(header);
    const between = delimiter === 'blanks' ? ' ' : delimiter;
    const quoted = (cell: string): string => `${quote}${cell.replaceAll(quote, marks + quote)}${quote}`;
    return fc.record({
      header: fc.constant(header),
      record: fc
        .tuple(...cells.map((cell) => fc.constantFrom(cell, quote === '' ? cell : quoted(cell))))
        .map((written) => Buffer.from(written.join(between))),
      column: fc.integer({ min: 0, max: columns.length - 1 }),
      value: text,
    });
  })
  .filter(({ header, record }) => new RefusedCsv(header).split(record) !== null || isShort(header, record));

const isShort = (header: CsvHeader, record: Buffer): boolean => {
  const count = new RefusedCsv(header).count(record);
  return count > 0 && count < columns.length;
};

describe('an edit of one cell', () => {
  // proves: edited-cell
  test('gives it the value, and leaves every other cell as it is written, in any dialect', () => {
    fc.assert(
      fc.property(cases, ({ header, record, column, value }) => {
        const csv = new EditedCsv(header);
        const before = writtenCells(header, record);
        let edited: Buffer;
        try {
          edited = csv.withValues(record, { [columns[column] ?? '']: value }, 'row 1');
        } catch {
          // With quotes that can be doubled every value can be written.
          expect(header.dialect).toBeDefined();
          return;
        }
        // Of a record that is left with nothing in it no load is made.
        fc.pre(csv.measure(edited).records === 1);
        const after = writtenCells(header, edited);
        expect(new RefusedCsv(header).allCells(edited)?.[column]).toBe(value);
        expect(after).toHaveLength(Math.max(before.length, column + 1));
        for (const [at, written] of before.entries()) if (at !== column) expect(after[at]).toBe(written);
        for (const added of after.slice(before.length))
          if (added !== after[column]) expect(added).toMatch(/^$|^""$/);
        expect(csv.isWhole(edited)).toBe(true);
      }),
      { numRuns: 1_000 },
    );
  });
});
