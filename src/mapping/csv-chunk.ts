import { isUtf8 } from 'node:buffer';
import { MAX_VALUE_BYTES } from '../domain/limits.ts';
import type { Reason } from '../domain/reject.ts';
import { plainDialect } from '../formats/csv-dialect.ts';
import type { CsvHeader } from '../formats/csv-header.ts';
import { CellTable, PlainRecords, readStrayQuote } from '../formats/csv-plain.ts';
import { createRecordScanner } from '../formats/csv-scanner.ts';
import type { RecordScanner } from '../formats/record-scanner.ts';
import type { CsvCells } from './csv-cells.ts';
import { toByteString } from './json-text.ts';
import { invalidEscape, malformed, shifted, strayQuote, unclearApostrophe, wrongCount } from './reasons.ts';
import type { RecordIndex } from './rows.ts';

/**
 * The records of a chunk of CSV, as they can be read: in `bytes` from `starts` to `ends` as RFC 4180 has them. `records`
 * has where they came from. Those of a plain file are read where they are; those of any other dialect are written anew.
 */
export class CsvChunk {
  bytes: Buffer = Buffer.alloc(0);
  starts: Int32Array = new Int32Array(0);
  ends: Int32Array = new Int32Array(0);
  /** Why records cannot be read. */
  problems = new Map<number, Reason>();
  isUtf8 = true;

  readonly #header: CsvHeader;
  readonly #records: RecordIndex;

  constructor(header: CsvHeader, records: RecordIndex) {
    this.#header = header;
    this.#records = records;
  }

  index(source: Buffer): void {
    this.problems = new Map();
    const { delimiter, strayQuotes } = this.#header;
    const dialect = strayQuotes === 'keep' ? plainDialect(this.#header) : this.#header.dialect;
    if (dialect === undefined) this.#indexPlain(source);
    else this.#rewrite(source, new PlainRecords(dialect, delimiter));
    this.isUtf8 = isUtf8(this.bytes);
  }

  #indexPlain(source: Buffer): void {
    const scanner = createRecordScanner(this.#header);
    let line = 0;
    for (let start = 0; start < source.length; ) {
      const end = scanner.next(source, start, source.length, true);
      if (!scanner.blank) {
        const record = this.#records.add(start, scanner.contentEnd, line);
        const { problem, contentEnd } = scanner;
        if (problem === 'invalid_quote') {
          const cells = this.#readStray(source, start, contentEnd);
          this.problems.set(record, cells === null ? malformed(problem) : strayQuote);
        } else if (problem !== null) this.problems.set(record, malformed(problem));
      }
      line += scanner.lines;
      start = end;
    }
    this.bytes = source;
    this.starts = this.#records.starts;
    this.ends = this.#records.ends;
  }

  #rewrite(source: Buffer, plain: PlainRecords): void {
    const cells = new CellTable();
    const scanner = createRecordScanner(this.#header, undefined, cells);
    const starts: number[] = [];
    const ends: number[] = [];
    let line = 0;
    for (let start = 0; start < source.length; ) {
      const end = scanner.next(source, start, source.length, true);
      if (!scanner.blank) {
        const record = this.#records.add(start, scanner.contentEnd, line);
        starts.push(plain.at);
        this.#rewriteRecord(record, start, scanner, source, cells, plain);
        ends.push(plain.at);
      }
      line += scanner.lines;
      start = end;
    }
    this.bytes = plain.bytes.subarray(0, plain.at);
    this.starts = Int32Array.from(starts);
    this.ends = Int32Array.from(ends);
  }

  #rewriteRecord(
    record: number,
    start: number,
    scanner: RecordScanner,
    source: Buffer,
    cells: CellTable,
    plain: PlainRecords,
  ): void {
    const { problem } = scanner;
    if (problem !== null) {
      const stray = problem === 'invalid_quote' ? this.#readStray(source, start, scanner.contentEnd) : null;
      if (stray === null) this.problems.set(record, malformed(problem));
      else plain.writeCells(stray);
    } else if (!plain.write(source, cells)) this.problems.set(record, invalidEscape);
  }

  /** The cells of the record if one quote too many at the start of a cell is all that is wrong with it; each a byte string. */
  #readStray(source: Buffer, start: number, end: number): string[] | null {
    const { dialect, delimiter, columns } = this.#header;
    if (dialect !== undefined || end - start > MAX_VALUE_BYTES) return null;
    return readStrayQuote(source.toString('latin1', start, end), delimiter, columns.length);
  }
}

/** The UTF-8 mark as a byte string, which a file appended to another keeps. */
const byteOrderMark = '\xef\xbb\xbf';

/** The header of a CSV, to be known again among its records: files that were put into one bring theirs along. */
export class RepeatedHeader {
  /** The names as byte strings. */
  readonly #names: readonly string[];
  readonly #idIndex: number;
  readonly #idName: Buffer;

  constructor(columns: readonly string[], idIndex: number) {
    this.#names = columns.map(toByteString);
    this.#idIndex = idIndex;
    this.#idName = Buffer.from(this.#names[idIndex] ?? '', 'latin1');
  }

  /**
   * Returns true if the record found by `cells` repeats the header. An id other than its column's name costs a comparison or
   * two.
   */
  isIn(bytes: Buffer, cells: CsvCells): boolean {
    const name = this.#idName;
    const from = cells.starts[this.#idIndex] ?? 0;
    const start = bytes[from] === 0xef && this.#idIndex === 0 ? from + byteOrderMark.length : from;
    if ((cells.ends[this.#idIndex] ?? 0) - start !== name.length) return false;
    for (let at = 0; at < name.length; at++) if (bytes[start + at] !== name[at]) return false;
    const written = (column: number): string => {
      const cell = cells.byteString(bytes, column);
      return column === 0 && cell.startsWith(byteOrderMark) ? cell.slice(byteOrderMark.length) : cell;
    };
    // Most names suffice, since names that we gave to columns are not in the file.
    const same = this.#names.filter((name, column) => written(column).trim() === name).length;
    return 2 * same > this.#names.length;
  }
}

/** Finds the cells of the record in bytes [start, end); returns why they do not fit the columns. */
export function findFitting(
  cells: CsvCells,
  { columns: { length: columns }, ragged, lastColumn }: CsvHeader,
  bytes: Buffer,
  start: number,
  end: number,
): Reason | null {
  const found = cells.find(bytes, start, end);
  if (found === columns) return null;
  if (!cells.fits(bytes, end, found, ragged === 'pad')) return wrongCount(columns, found);
  // A surplus delimiter has probably moved all cells behind it into wrong columns.
  const isShifted = lastColumn === 'empty' && found > columns && !cells.isEmpty(columns - 1);
  return isShifted ? shifted(columns, found) : null;
}

/** Leaves apostrophes out that defuse formulas; returns the reason if it is not clear whether they do. */
export function undoDefused(cells: CsvCells, { defused, columns }: CsvHeader, bytes: Buffer): Reason | null {
  if (defused === 'undone') cells.undoDefused(bytes);
  if (defused !== 'doubtful') return null;
  const doubtful = cells.findDefused(bytes);
  return doubtful === -1 ? null : unclearApostrophe(columns[doubtful] ?? null);
}

/** Returns the reason if a cell holds U+0000, or a property more than `MAX_VALUE_BYTES`. */
export function findCellProblem(
  cells: CsvCells,
  { columns }: CsvHeader,
  bytes: Buffer,
  isProperty: (column: number) => boolean,
): Reason | null {
  for (const [index, column] of columns.entries()) {
    const cell = cells.byteString(bytes, index);
    if (cell.includes('\0')) return { code: 'nul_character', message: 'the cell holds U+0000', column };
    if (cell.length > MAX_VALUE_BYTES && isProperty(index)) {
      const message = `the cell has ${cell.length} bytes; at most ${MAX_VALUE_BYTES} are allowed`;
      return { code: 'value_too_large', message, column };
    }
  }
  return null;
}
