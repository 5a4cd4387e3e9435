import { READ_BYTES } from '../domain/limits.ts';

/* CSV as we write it for ourselves: RFC 4180, commas, LF, quotes only where they are needed. */

const COMMA = 44;
const LF = 10;
/** What a reader would take for something else, blanks at an end included. */
const needsQuotes = /[",\r\n]|^[ \t]|[ \t]$/;

/** A cell, quoted if need be. */
export function csvCell(text: string): Buffer {
  return encode(needsQuotes.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
}

/** UTF-8. Half a surrogate pair becomes bytes that are no UTF-8, so that its record is refused and not changed. */
function encode(text: string): Buffer {
  if (text.isWellFormed()) return Buffer.from(text);
  const parts = [...text].map((character) => {
    const code = character.codePointAt(0) as number;
    if (character.length > 1 || code < 0xd800 || code > 0xdfff) return Buffer.from(character);
    return Buffer.from([0xe0 | (code >> 12), 0x80 | ((code >> 6) & 0x3f), 0x80 | (code & 0x3f)]);
  });
  return Buffer.concat(parts);
}

/** Rows as they are written, taken away in buffers worth working on. Empty cells at the end of a row are not written. */
export class CsvText {
  #buffer = Buffer.allocUnsafeSlow(READ_BYTES);
  #length = 0;
  #full: Buffer[] = [];
  /** Columns of the open row that are written, and rows that are begun. */
  #columns = 0;
  #rows = 0;

  /** A cell that is not empty, written by `csvCell`; `row` and `column` count from 1 and never go back. Gaps are empty. */
  cell(row: number, column: number, bytes: Buffer): void {
    if (row > this.#rows) this.#startRow(row);
    const commas = this.#columns === 0 ? column - 1 : column - this.#columns;
    this.#reserve(commas + bytes.length);
    this.#buffer.fill(COMMA, this.#length, this.#length + commas);
    bytes.copy(this.#buffer, this.#length + commas);
    this.#length += commas + bytes.length;
    this.#columns = column;
  }

  /** Ends the last row. */
  end(): void {
    if (this.#rows > 0) this.#startRow(this.#rows + 1);
  }

  /** What is ready; all of it once there is no more to come. */
  take(final: boolean): readonly Buffer[] {
    if (final) this.#flush(0);
    const ready = this.#full;
    if (ready.length > 0) this.#full = [];
    return ready;
  }

  #startRow(row: number): void {
    const ends = row - Math.max(1, this.#rows);
    this.#reserve(ends);
    this.#buffer.fill(LF, this.#length, this.#length + ends);
    this.#length += ends;
    this.#rows = row;
    this.#columns = 0;
  }

  #reserve(bytes: number): void {
    if (this.#length + bytes > this.#buffer.length) this.#flush(bytes);
  }

  #flush(room: number): void {
    if (this.#length > 0) this.#full.push(this.#buffer.subarray(0, this.#length));
    this.#buffer = Buffer.allocUnsafeSlow(Math.max(READ_BYTES, room));
    this.#length = 0;
  }
}
