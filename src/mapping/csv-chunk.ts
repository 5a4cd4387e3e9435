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
import { invalidEscape, malformed, strayQuote } from './reasons.ts';
import type { RecordIndex } from './rows.ts';

/**
 * The records of a chunk of CSV, as they can be read: in `bytes` from `starts` to `ends` as RFC 4180 has them. `records`
 * has where they came from. Those of a plain file are read where they are; those of any other dialect are written anew.
 */
export class CsvChunk {
  bytes: Buffer = Buffer.alloc(0);
  starts: Int32Array = new Int32Array(0);
  ends: Int32Array = new Int32Array(0);
  /** Records with quotes. */
  quoted: number[] = [];
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
    this.quoted = [];
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
        else if (scanner.quoted) this.quoted.push(record);
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
      else {
        plain.writeCells(stray);
        this.quoted.push(record);
      }
    } else if (!plain.write(source, cells)) this.problems.set(record, invalidEscape);
    else if (plain.quoted) this.quoted.push(record);
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
    return this.isOf(this.#names.map((_, column) => cells.byteString(bytes, column)));
  }

  /** Does the same for byte strings. Most names suffice, since names that we gave to columns are not in the file. */
  isOf(cells: readonly string[]): boolean {
    const written = (column: number): string => {
      const cell = cells[column] ?? '';
      return column === 0 && cell.startsWith(byteOrderMark) ? cell.slice(byteOrderMark.length) : cell;
    };
    if (written(this.#idIndex) !== this.#names[this.#idIndex]) return false;
    const same = this.#names.filter((name, column) => written(column).trim() === name).length;
    return 2 * same > this.#names.length;
  }
}
