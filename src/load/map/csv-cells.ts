import { isUtf8 } from 'node:buffer';
import { isDefused } from '../../base/formula.ts';
import { MAX_VALUE_BYTES } from '../../base/limits.ts';
import type { Reason } from '../../domain/reject.ts';
import { isBlankByte, plainMarks } from '../../formats/csv-dialect.ts';
import type { CsvHeader } from '../../formats/csv-header.ts';
import { createCsvScanner } from '../../formats/csv-scanner.ts';
import { validPrefix } from '../../formats/utf8.ts';
import { malformed, notUtf8, shifted, wrongCount } from './reasons.ts';
import { type RecordPlaces, readRefusal } from './record-places.ts';

/**
 * Meanings that a byte can have. Outside quotes, a delimiter means ENDS_CELL. Inside quotes, a
 * quote means ENDS_CELL.
 */
const ORDINARY = 0;
const NEEDS_ESCAPE = 1;
const ENDS_CELL = 2;

const QUOTE = 0x22;
const APOSTROPHE = 0x27;
const BACKSLASH = 0x5c;

/** Meaning of each byte inside quotes. */
const quotedMeanings = Uint8Array.from({ length: 256 }, (_, byte) => {
  if (byte === QUOTE) return ENDS_CELL;
  return byte < 32 || byte === BACKSLASH ? NEEDS_ESCAPE : ORDINARY;
});

/** Finds the cells of a CSV record. */
export class CsvCells {
  /** Bytes of the chunk, then copies of cells with doubled quotes. `find` may replace them. */
  bytes: Buffer = Buffer.alloc(0);
  /** Ranges of the cells in `bytes`, without quotes. Surplus cells share the last slot. */
  readonly starts: Int32Array;
  readonly ends: Int32Array;
  /** 1 for a cell that may need escaping for COPY or JSON. */
  readonly special: Uint8Array;
  hasSpecial = false;

  /** Outside quotes. */
  readonly #meanings: Uint8Array;
  #source: Buffer = this.bytes;
  /** Copy of the source with free space at its end, reused for the next chunk. */
  #copy = this.bytes;
  #free = 0;
  /** True if a cell beyond the columns is not blank. */
  #hasSurplus = false;

  constructor({ delimiter }: Pick<CsvHeader, 'delimiter'>, columns: number) {
    this.starts = new Int32Array(columns + 1);
    this.ends = new Int32Array(columns + 1);
    this.special = new Uint8Array(columns + 1);
    this.#meanings = Uint8Array.from(quotedMeanings);
    this.#meanings[QUOTE] = ORDINARY;
    this.#meanings[delimiter.charCodeAt(0)] = ENDS_CELL;
  }

  use(source: Buffer): void {
    this.#source = source;
    this.bytes = source;
  }

  isEmpty(column: number): boolean {
    return this.starts[column] === this.ends[column];
  }

  /** Finds the cells of a well-formed record, and returns their number. */
  find(start: number, end: number): number {
    this.#free = 0;
    this.hasSpecial = false;
    this.#hasSurplus = false;
    const bytes = this.#source;
    const plainMeanings = this.#meanings;
    const columns = this.starts.length - 1;
    let cell = 0;
    for (let at = start; ; at++) {
      const isQuoted = bytes[at] === QUOTE && at < end;
      const from = isQuoted ? at + 1 : at;
      const meanings = isQuoted ? quotedMeanings : plainMeanings;
      let special = 0;
      let isDoubled = false;
      for (at = from; ; at++) {
        while (at < end && meanings[bytes[at] as number] === ORDINARY) at++;
        if (at >= end) break;
        if (meanings[bytes[at] as number] === NEEDS_ESCAPE) special = 1;
        else if (isQuoted && bytes[at + 1] === QUOTE && at + 1 < end) {
          isDoubled = true;
          at++;
        } else break;
      }
      const slot = Math.min(cell, columns);
      this.starts[slot] = from;
      this.ends[slot] = at;
      this.special[slot] = isDoubled ? 1 : special;
      if (special !== 0 || isDoubled) this.hasSpecial = true;
      if (isDoubled) this.#undouble(slot, end - start);
      if (slot === columns && !this.#hasSurplus) this.#hasSurplus = !this.#isBlank(from, at, isQuoted);
      if (isQuoted) at++;
      cell++;
      if (at >= end) return cell;
    }
  }

  /** Finds one cell. Returns false if the cell is missing or contains doubled quotes. */
  findOne(start: number, end: number, column: number): boolean {
    const bytes = this.#source;
    for (let at = start, cell = 0; ; at++, cell++) {
      const isQuoted = bytes[at] === QUOTE && at < end;
      const from = isQuoted ? at + 1 : at;
      let isDoubled = false;
      if (isQuoted) {
        for (at = from; at < end; at++) {
          if (bytes[at] !== QUOTE) continue;
          if (bytes[at + 1] !== QUOTE || at + 1 >= end) break;
          isDoubled = true;
          at++;
        }
      } else while (at < end && this.#meanings[bytes[at] ?? 0] !== ENDS_CELL) at++;
      if (cell === column) {
        this.starts[column] = from;
        this.ends[column] = at;
        return !isDoubled;
      }
      if (isQuoted) at++;
      if (at >= end) return false;
    }
  }

  #isBlank(start: number, end: number, isQuoted: boolean): boolean {
    if (isQuoted) return start === end;
    let at = start;
    while (at < end && isBlankByte(this.bytes[at])) at++;
    return at === end;
  }

  #undouble(slot: number, length: number): void {
    const [start, end] = [this.starts[slot] ?? 0, this.ends[slot] ?? 0];
    let to = this.#makeRoom(length);
    this.starts[slot] = to;
    const { bytes } = this;
    for (let from = start; from < end; from++) {
      const byte = bytes[from] ?? 0;
      bytes[to++] = byte;
      if (byte === QUOTE) from++;
    }
    this.ends[slot] = to;
    this.#free = to;
  }

  /**
   * Makes room for copies of a record's cells, and returns the position of the next copy. The
   * record has `length` bytes, and all its copies together are shorter.
   */
  #makeRoom(length: number): number {
    if (this.#free > 0) return this.#free;
    const needed = this.#source.length + length;
    if (this.bytes !== this.#copy || this.#copy.length < needed) {
      if (this.#copy.length < needed) this.#copy = Buffer.allocUnsafeSlow(needed + length);
      this.#source.copy(this.#copy);
      this.bytes = this.#copy;
    }
    return this.#source.length;
  }

  /** True if the last record has surplus cells and all of them are blank. */
  fits(count: number): boolean {
    return count >= this.starts.length && !this.#hasSurplus;
  }

  text(column: number): string {
    return this.bytes.toString('utf8', this.starts[column], this.ends[column]);
  }

  byteString(column: number): string {
    return this.bytes.toString('latin1', this.starts[column], this.ends[column]);
  }

  /** Removes the apostrophes that prevent spreadsheet programs from treating cells as formulas. */
  undoDefused(): void {
    const { starts, bytes } = this;
    for (let column = 0; column < starts.length - 1; column++) {
      const start = starts[column] ?? 0;
      if (bytes[start] === APOSTROPHE && isDefused(this.text(column))) starts[column] = start + 1;
    }
  }
}

export class CsvChunk {
  readonly cells: CsvCells;
  readonly #header: CsvHeader;
  readonly #records: RecordPlaces;
  readonly #names: readonly string[];
  #source: Buffer = Buffer.alloc(0);
  #isUtf8 = true;
  #hasNul = false;
  #problems = new Map<number, Reason>();

  constructor(header: CsvHeader, records: RecordPlaces, names = header.columns) {
    this.cells = new CsvCells(header, header.columns.length);
    this.#header = header;
    this.#records = records;
    this.#names = names;
  }

  index(source: Buffer): void {
    this.#source = source;
    this.cells.use(source);
    this.#isUtf8 = isUtf8(source);
    this.#hasNul = source.includes(0);
    this.#problems = new Map();
    const scanner = createCsvScanner(plainMarks(this.#header));
    const isRewritten = this.#header.isRewritten === true;
    let line = 0;
    for (let start = 0; start < source.length; ) {
      const end = scanner.next(source, start, source.length, true);
      if (!scanner.blank) {
        const { problem, contentEnd } = scanner;
        const record = this.#records.add(start, contentEnd, line);
        const reason = problem === null ? readRefusal(source, start, contentEnd) : malformed(problem);
        if (reason !== null) this.#problems.set(record, reason);
      }
      line += isRewritten && !scanner.blank ? 1 : scanner.lines;
      start = end;
    }
  }

  isSound(record: number): boolean {
    return !this.#problems.has(record) && this.#isText(record);
  }

  #isText(record: number): boolean {
    if (this.#isUtf8) return true;
    return isUtf8(this.#source.subarray(this.#records.starts[record], this.#records.ends[record]));
  }

  /** Finds one cell. Returns false if the cell is missing or contains doubled quotes. */
  findPlainCell(record: number, column: number): boolean {
    const { starts, ends } = this.#records;
    return this.cells.findOne(starts[record] ?? 0, ends[record] ?? 0, column);
  }

  /** Returns the number of cells. 0 if the record is not well-formed. */
  count(record: number): number {
    return this.#problems.has(record) ? 0 : this.#findCells(record);
  }

  #findCells(record: number): number {
    return this.cells.find(this.#records.starts[record] ?? 0, this.#records.ends[record] ?? 0);
  }

  /** Returns the reason why the record cannot be read or does not fit the columns, or `null`. */
  find(record: number): Reason | null {
    const problem = this.#problems.size === 0 ? undefined : this.#problems.get(record);
    if (problem !== undefined) return problem;
    if (!this.#isText(record)) return this.#explainNotText(record);
    const { columns, lastColumn } = this.#header;
    const count = this.#findCells(record);
    if (count === columns.length) return null;
    if (!this.cells.fits(count)) return wrongCount(columns.length, count);
    // If the last column is empty in most records but not in this one, a surplus delimiter has
    // probably shifted the cells.
    const isShifted =
      lastColumn === 'empty' && count > columns.length && !this.cells.isEmpty(columns.length - 1);
    return isShifted ? shifted(columns.length, count) : null;
  }

  #explainNotText(record: number): Reason {
    const [start, end] = [this.#records.starts[record] ?? 0, this.#records.ends[record] ?? 0];
    const isSplit = this.#findCells(record) === this.#header.columns.length;
    return notUtf8Csv(this.#source, start, end, isSplit ? this.cells : null, this.#names);
  }

  undoDefused(): void {
    if (this.#header.defused === true) this.cells.undoDefused();
  }

  findCellProblem(record: number, isProperty: readonly boolean[]): Reason | null {
    const length = (this.#records.ends[record] ?? 0) - (this.#records.starts[record] ?? 0);
    if (!this.#hasNul && length <= MAX_VALUE_BYTES) return null;
    for (const [index, column] of this.#header.columns.entries()) {
      const cell = this.cells.byteString(index);
      if (cell.includes('\0')) return { code: 'nul_character', message: `${column} holds U+0000`, column };
      if (cell.length > MAX_VALUE_BYTES && isProperty[index] === true) {
        const message = `${column} has ${cell.length} bytes; at most ${MAX_VALUE_BYTES} are allowed`;
        return { code: 'value_too_large', message, column };
      }
    }
    return null;
  }
}

/**
 * Returns the reason for refusing a record that is not in UTF-8. If `cells` is not `null`, it
 * contains a cell for each column, and the reason names the column at fault.
 */
function notUtf8Csv(
  bytes: Buffer,
  start: number,
  end: number,
  cells: CsvCells | null,
  columns: readonly string[],
): Reason {
  const record = bytes.subarray(start, end);
  const at = start + validPrefix(record);
  const column = cells === null ? -1 : columns.findIndex((_, index) => at < (cells.ends[index] ?? 0));
  return notUtf8(record, columns[column] ?? null);
}
