import { isUtf8 } from 'node:buffer';
import { MAX_VALUE_BYTES } from '../domain/limits.ts';
import type { Reason } from '../domain/reject.ts';
import { readStrayQuote } from '../formats/csv-cell-table.ts';
import type { CsvHeader } from '../formats/csv-header.ts';
import { createRecordScanner } from '../formats/csv-scanner.ts';
import { CsvCells } from './csv-cells.ts';
import {
  invalidEscape,
  malformed,
  shifted,
  strayQuote,
  Utf8Reasons,
  unclearApostrophe,
  wrongCount,
} from './reasons.ts';
import type { RecordIndex } from './rows.ts';

/** The records of a chunk of CSV, read one by one: `find` gives the cells of each, or the reason why it cannot be read. */
export class CsvChunk {
  /** The cells of the record found last. */
  readonly cells: CsvCells;
  readonly #header: CsvHeader;
  readonly #records: RecordIndex;
  /** Names of the columns for reasons. */
  readonly #names: readonly string[];
  #source: Buffer = Buffer.alloc(0);
  #isUtf8 = true;
  #utf8Reasons = new Utf8Reasons();
  #hasNul = false;
  #problems = new Map<number, Reason>();
  /** The cells of records with a stray quote that is kept. */
  #strays = new Map<number, readonly string[]>();

  constructor(header: CsvHeader, records: RecordIndex, names = header.columns) {
    this.cells = new CsvCells(header, header.columns.length);
    this.#header = header;
    this.#records = records;
    this.#names = names;
  }

  /** Finds the records of the chunk, and adds them to the index. */
  index(source: Buffer): void {
    this.#source = source;
    this.cells.use(source);
    this.#isUtf8 = isUtf8(source);
    this.#utf8Reasons = new Utf8Reasons();
    this.#hasNul = source.includes(0);
    this.#problems = new Map();
    this.#strays = new Map();
    const scanner = createRecordScanner(this.#header);
    let line = 0;
    for (let start = 0; start < source.length; ) {
      const end = scanner.next(source, start, source.length, true);
      if (!scanner.blank) {
        const { problem, contentEnd } = scanner;
        const record = this.#records.add(start, contentEnd, line);
        const stray = problem === 'invalid_quote' ? this.#readStray(start, contentEnd) : null;
        if (stray !== null && this.#header.strayQuotes === 'keep') this.#strays.set(record, stray);
        else if (problem !== null)
          this.#problems.set(record, stray === null ? malformed(problem) : strayQuote);
      }
      line += scanner.lines;
      start = end;
    }
  }

  /** Returns the cells of the record if one quote too many at the start of a cell is all that is wrong with it; each a byte string. */
  #readStray(start: number, end: number): string[] | null {
    const { dialect, delimiter, columns } = this.#header;
    if (dialect !== undefined || end - start > MAX_VALUE_BYTES) return null;
    return readStrayQuote(this.#source.toString('latin1', start, end), delimiter, columns.length);
  }

  /** Tells whether the record is well-formed text. */
  isSound(record: number): boolean {
    return !this.#problems.has(record) && this.#isText(record);
  }

  #isText(record: number): boolean {
    if (this.#isUtf8) return true;
    return isUtf8(this.#source.subarray(this.#records.starts[record], this.#records.ends[record]));
  }

  /** Finds a cell that is written as it is meant; false if it is not. */
  findPlainCell(record: number, column: number): boolean {
    if (this.#strays.has(record)) return false;
    const { starts, ends } = this.#records;
    return this.cells.findOne(starts[record] ?? 0, ends[record] ?? 0, column);
  }

  /** Finds all cells of the record, however many they are. Returns their number; 0 if it is not well-formed. */
  count(record: number): number {
    return this.#problems.has(record) ? 0 : Math.max(0, this.#findCells(record));
  }

  #findCells(record: number): number {
    const stray = this.#strays.size === 0 ? undefined : this.#strays.get(record);
    if (stray !== undefined) return this.cells.set(stray);
    return this.cells.find(this.#records.starts[record] ?? 0, this.#records.ends[record] ?? 0);
  }

  /** Finds the cells of the record; returns why it cannot be read, or why they do not fit the columns. */
  find(record: number): Reason | null {
    const problem = this.#problems.size === 0 ? undefined : this.#problems.get(record);
    if (problem !== undefined) return problem;
    if (!this.#isText(record)) return this.#explainNotText(record);
    const { columns, ragged, lastColumn } = this.#header;
    const found = this.#findCells(record);
    if (found === columns.length) return null;
    if (found === -1) return invalidEscape;
    if (!this.cells.fits(found, ragged === 'pad')) return wrongCount(columns.length, found);
    // A surplus delimiter has probably moved all cells behind it into wrong columns.
    const isShifted =
      lastColumn === 'empty' && found > columns.length && !this.cells.isEmpty(columns.length - 1);
    return isShifted ? shifted(columns.length, found) : null;
  }

  #explainNotText(record: number): Reason {
    const [start, end] = [this.#records.starts[record] ?? 0, this.#records.ends[record] ?? 0];
    const isSplit = this.#findCells(record) === this.#header.columns.length;
    return this.#utf8Reasons.ofCsv(this.#source, start, end, isSplit ? this.cells : null, this.#names);
  }

  /** Leaves apostrophes out that defuse formulas; returns the reason if it is not clear whether they do. */
  undoDefused(): Reason | null {
    const { defused, columns } = this.#header;
    if (defused === 'undone') this.cells.undoDefused();
    if (defused !== 'doubtful') return null;
    const doubtful = this.cells.findDefused();
    return doubtful === -1 ? null : unclearApostrophe(columns[doubtful] ?? null);
  }

  /** Returns the reason if a cell of the record holds U+0000, or a property more than `MAX_VALUE_BYTES`. */
  findCellProblem(record: number, isProperty: readonly boolean[]): Reason | null {
    const length = (this.#records.ends[record] ?? 0) - (this.#records.starts[record] ?? 0);
    if (!this.#hasNul && length <= MAX_VALUE_BYTES) return null;
    for (const [index, column] of this.#header.columns.entries()) {
      const cell = this.cells.byteString(index);
      if (cell.includes('\0')) return { code: 'nul_character', message: 'the cell holds U+0000', column };
      if (cell.length > MAX_VALUE_BYTES && isProperty[index] === true) {
        const message = `the cell has ${cell.length} bytes; at most ${MAX_VALUE_BYTES} are allowed`;
        return { code: 'value_too_large', message, column };
      }
    }
    return null;
  }
}
