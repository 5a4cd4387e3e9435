import { isDefused } from '../../base/formula.ts';
import { isBlankByte } from '../../formats/csv-dialect.ts';
import type { CsvHeader } from '../../formats/csv-header.ts';

/** Meanings of bytes. The end of a cell is a delimiter outside quotes, or a quote inside quotes. */
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

/**
 * Finds the cells of a CSV record. If a quoted cell contains doubled quotes, a copy with single
 * quotes is stored after the bytes of the chunk.
 */
export class CsvCells {
  /**
   * Bytes of the chunk, followed by the copies of cells that contain doubled quotes. `find` may
   * replace the buffer.
   */
  bytes: Buffer = Buffer.alloc(0);
  /**
   * Ranges of the cells in `bytes`, without the quotes around them. If the record has more cells
   * than the file has columns, the surplus cells share the last slot.
   */
  readonly starts: Int32Array;
  readonly ends: Int32Array;
  /** 1 for a special cell. Such a cell may need escaping for COPY or JSON. */
  readonly special: Uint8Array;
  /** True if `special` is 1 for any cell of the record. */
  hasSpecial = false;

  /** Meaning of each byte outside quotes. */
  readonly #meanings: Uint8Array;
  #source: Buffer = this.bytes;
  /** Copy of the source with free space at its end. It is reused for the next chunk. */
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

  /** Finds the cells of a well-formed record. Returns their number. */
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
   * Returns the position in `bytes` at which the next copy of a cell can be stored. `length` is the
   * length of the record. All copies of the record's cells together are shorter than the record.
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

  /**
   * Returns true if the last record has more cells than the file has columns, and all surplus cells
   * are blank.
   */
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
