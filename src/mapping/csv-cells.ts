import { isDefused } from '../domain/formula.ts';
import { isBlankByte } from '../formats/csv-dialect.ts';

/** The meanings of a byte of a cell; only outside of quotes a delimiter ends one. */
const ORDINARY = 0;
const NEEDS_ESCAPE = 1;
const ENDS_CELL = 2;

const QUOTE = 0x22;
const APOSTROPHE = 0x27;
const BACKSLASH = 0x5c;
const ZERO = 0x30;
const LETTER_U = 0x75;

/** The letter behind the backslash that COPY's text format wants before these bytes; 0 for all others. */
const copyEscapes = byteTable({
  '\\': '\\',
  '\t': 't',
  '\n': 'n',
  '\r': 'r',
  '\b': 'b',
  '\f': 'f',
  '\v': 'v',
});
/** The same for JSON; `numbered` where it wants \u00 and two digits. */
const numbered = 1;
const jsonEscapes = byteTable({
  '"': '"',
  '\\': '\\',
  '\t': 't',
  '\n': 'n',
  '\r': 'r',
  '\b': 'b',
  '\f': 'f',
});
for (let byte = 0; byte < 32; byte++) if (jsonEscapes[byte] === 0) jsonEscapes[byte] = numbered;
/** The most bytes that a byte of a cell becomes as JSON in COPY text: `\\u001f`. */
export const MAX_ESCAPED_BYTES = 7;

const escaped = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte < 32 || byte === BACKSLASH ? NEEDS_ESCAPE : ORDINARY,
);

function byteTable(letters: Readonly<Record<string, string>>): Uint8Array {
  const table = new Uint8Array(256);
  for (const [from, to] of Object.entries(letters)) table[from.charCodeAt(0)] = to.charCodeAt(0);
  return table;
}

/** The cells of one record, found and copied byte by byte; the scanner has seen to it that quotes are well placed. */
export class CsvCells {
  /** The start and end of each cell, without quotes. Cells beyond `columns` share the last slot. */
  readonly starts: Int32Array;
  readonly ends: Int32Array;
  /** 1 where the cell has doubled quotes. */
  readonly doubled: Uint8Array;
  /** True if a cell found last holds something that COPY wants escaped, besides quotes. */
  hasEscapes = false;
  /** The cell that `findOne` has found. */
  oneStart = 0;
  oneEnd = 0;
  /** The meaning of each byte outside of quotes. */
  readonly #meaning: Uint8Array;

  constructor(delimiter: number, columns: number) {
    this.starts = new Int32Array(columns + 1);
    this.ends = new Int32Array(columns + 1);
    this.doubled = new Uint8Array(columns + 1);
    this.#meaning = Uint8Array.from(escaped);
    this.#meaning[delimiter] = ENDS_CELL;
  }

  /** Returns the length of a cell's value. */
  bytesOf(bytes: Buffer, column: number): number {
    if (this.doubled[column] === 1) return this.byteString(bytes, column).length;
    return (this.ends[column] ?? 0) - (this.starts[column] ?? 0);
  }

  isEmpty(column: number): boolean {
    return this.starts[column] === this.ends[column];
  }

  /** Returns the number of cells. Those beyond the header's are counted, not kept. */
  find(bytes: Buffer, start: number, end: number): number {
    const meaning = this.#meaning;
    const kept = this.starts.length - 1;
    this.hasEscapes = false;
    let cell = 0;
    let at = start;
    for (;;) {
      const slot = Math.min(cell, kept);
      if (bytes[at] === QUOTE && at < end) {
        const close = this.#findQuotedEnd(bytes, at + 1, end, slot);
        this.starts[slot] = at + 1;
        this.ends[slot] = close;
        at = close + 1;
      } else {
        const from = at;
        while (at < end) {
          const is = meaning[bytes[at] ?? 0] ?? ORDINARY;
          if (is !== ORDINARY) {
            if (is === ENDS_CELL) break;
            this.hasEscapes = true;
          }
          at++;
        }
        this.starts[slot] = from;
        this.ends[slot] = at;
        this.doubled[slot] = 0;
      }
      cell++;
      if (at >= end) return cell;
      at++;
    }
  }

  /** Finds one cell without walking what follows it; false if it has doubled quotes or is not there. */
  findOne(bytes: Buffer, start: number, end: number, column: number): boolean {
    let at = start;
    for (let cell = 0; ; cell++) {
      const isQuoted = bytes[at] === QUOTE && at < end;
      const from = isQuoted ? at + 1 : at;
      if (isQuoted) at = this.#findQuotedEnd(bytes, from, end, this.doubled.length - 1);
      else while (at < end && this.#meaning[bytes[at] ?? 0] !== ENDS_CELL) at++;
      if (cell === column) {
        this.oneStart = from;
        this.oneEnd = at;
        return !isQuoted || this.doubled[this.doubled.length - 1] === 0;
      }
      if (isQuoted) at++;
      if (at >= end) return false;
      at++;
    }
  }

  /**
   * Whether a record of so many cells, found last, fits the columns after all: surplus cells have nothing in them, or cells
   * are missing and may be (`pad`), and are now there.
   */
  fits(bytes: Buffer, end: number, found: number, pad: boolean): boolean {
    const columns = this.starts.length - 1;
    if (found > columns) return this.#isSurplusEmpty(bytes, end, columns - 1);
    if (!pad) return false;
    this.starts.fill(end, found);
    this.ends.fill(end, found);
    this.doubled.fill(0, found);
    return true;
  }

  #isSurplusEmpty(bytes: Buffer, end: number, last: number): boolean {
    let at = this.ends[last] ?? 0;
    if (bytes[at] === QUOTE && at < end) at++;
    while (at < end) {
      // A delimiter, blanks or quotes around nothing, and the next delimiter.
      at++;
      if (bytes[at] === QUOTE && bytes[at + 1] === QUOTE && at + 1 < end) at += 2;
      else while (at < end && this.#meaning[bytes[at] ?? 0] !== ENDS_CELL && isBlankByte(bytes[at])) at++;
      if (at < end && this.#meaning[bytes[at] ?? 0] !== ENDS_CELL) return false;
    }
    return true;
  }

  /** Returns where the closing quote is; the scanner has seen to it that there is one. */
  #findQuotedEnd(bytes: Buffer, from: number, end: number, slot: number): number {
    let doubled = 0;
    let at = from;
    for (; at < end; at++) {
      const byte = bytes[at] ?? 0;
      if (escaped[byte] === NEEDS_ESCAPE) this.hasEscapes = true;
      if (byte !== QUOTE) continue;
      if (bytes[at + 1] !== QUOTE || at + 1 >= end) break;
      doubled = 1;
      at++;
    }
    this.doubled[slot] = doubled;
    return at;
  }

  /** The cell as it is meant. */
  text(bytes: Buffer, column: number): string {
    const text = bytes.toString('utf8', this.starts[column], this.ends[column]);
    return this.doubled[column] === 1 ? text.replaceAll('""', '"') : text;
  }

  /** The cell as it is written, quotes included. */
  written(bytes: Buffer, column: number): string {
    const [start, end] = [this.starts[column] ?? 0, this.ends[column] ?? 0];
    const isQuoted = bytes[end] === QUOTE && bytes[start - 1] === QUOTE;
    return isQuoted ? bytes.toString('utf8', start - 1, end + 1) : bytes.toString('utf8', start, end);
  }

  /** Writes the cell into `target` at `at`, as it is meant; returns where it ends. */
  copy(bytes: Buffer, column: number, target: Buffer, at: number): number {
    let to = at;
    const end = this.ends[column] ?? 0;
    const doubled = this.doubled[column] === 1;
    for (let from = this.starts[column] ?? 0; from < end; from++) {
      target[to++] = bytes[from] ?? 0;
      if (doubled && bytes[from] === QUOTE) from++;
    }
    return to;
  }

  /** Like `copy`, each quote escaped for JSON, and that escape for COPY. */
  copyEscaped(bytes: Buffer, column: number, target: Buffer, at: number): number {
    const start = this.starts[column] ?? 0;
    const end = this.ends[column] ?? 0;
    let to = at;
    for (let from = start; from < end; from++) {
      const byte = bytes[from] ?? 0;
      if (byte === QUOTE) {
        target[to++] = BACKSLASH;
        target[to++] = BACKSLASH;
        from++;
      }
      target[to++] = byte;
    }
    return to;
  }

  /** Like `copy`, escaped for COPY: any content. */
  copyText(bytes: Buffer, column: number, target: Buffer, at: number): number {
    let to = at;
    const end = this.ends[column] ?? 0;
    const doubled = this.doubled[column] === 1;
    for (let from = this.starts[column] ?? 0; from < end; from++) {
      const byte = bytes[from] ?? 0;
      const letter = copyEscapes[byte] ?? 0;
      if (letter !== 0) target[to++] = BACKSLASH;
      target[to++] = letter === 0 ? byte : letter;
      if (doubled && byte === QUOTE) from++;
    }
    return to;
  }

  /** Like `copy`, escaped as the inside of a JSON string, and that for COPY: any content. */
  copyJson(bytes: Buffer, column: number, target: Buffer, at: number): number {
    let to = at;
    const end = this.ends[column] ?? 0;
    const doubled = this.doubled[column] === 1;
    for (let from = this.starts[column] ?? 0; from < end; from++) {
      const byte = bytes[from] ?? 0;
      const letter = jsonEscapes[byte] ?? 0;
      if (letter === 0) target[to++] = byte;
      else to = escapeByte(byte, letter, target, to);
      if (doubled && byte === QUOTE) from++;
    }
    return to;
  }

  /** The cell as it is meant, as a byte string. */
  byteString(bytes: Buffer, column: number): string {
    const text = bytes.toString('latin1', this.starts[column], this.ends[column]);
    return this.doubled[column] === 1 ? text.replaceAll('""', '"') : text;
  }

  /** Leaves the apostrophe out of cells that have one because a spreadsheet would run them. */
  undoDefused(bytes: Buffer): void {
    const { starts } = this;
    for (let column = this.findDefused(bytes); column !== -1; column = this.findDefused(bytes, column + 1)) {
      starts[column] = (starts[column] ?? 0) + 1;
    }
  }

  /** The first column from `from` on whose cell looks as if it had an apostrophe because a spreadsheet would run it, or -1. */
  findDefused(bytes: Buffer, from = 0): number {
    const { starts, ends } = this;
    for (let column = from; column < starts.length - 1; column++) {
      const start = starts[column] ?? 0;
      if (bytes[start] !== APOSTROPHE) continue;
      if (isDefused(bytes.toString('utf8', start, ends[column]))) return column;
    }
    return -1;
  }
}

/** JSON's backslash is two for COPY. */
function escapeByte(byte: number, letter: number, target: Buffer, at: number): number {
  let to = at;
  target[to++] = BACKSLASH;
  target[to++] = BACKSLASH;
  if (letter === numbered) {
    target[to++] = LETTER_U;
    target[to++] = ZERO;
    target[to++] = ZERO;
    to += target.write(byte.toString(16).padStart(2, '0'), to, 'latin1');
  } else {
    if (letter === BACKSLASH) target[to++] = BACKSLASH;
    target[to++] = letter;
  }
  return to;
}
