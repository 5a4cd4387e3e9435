import { parse } from 'csv-parse/sync';
import { MAX_STRAY_QUOTES, MAX_VALUE_BYTES } from '../domain/limits.ts';
import { type CsvDialect, type CsvMarks, isBlankByte, marksOf } from './csv-dialect.ts';
import type { CellList } from './csv-walker.ts';
import { CR, LF } from './record-scanner.ts';

const QUOTE = 0x22;
const SPACE = 32;
const BACKSLASH = 92;
const leastCells = 1024;

/** The meaning of a letter behind a backslash in a dialect without quotes, as databases write it. */
const letters: ReadonlyMap<number, number> = new Map(
  Object.entries({ n: '\n', t: '\t', r: '\r', b: '\b', f: '\f', v: '\v', '0': '\0' }).map(([from, to]) => [
    from.charCodeAt(0),
    to.charCodeAt(0),
  ]),
);

/** The cells of one record, as the walker finds them. */
export class CellTable implements CellList {
  count = 0;
  starts = new Int32Array(leastCells);
  ends = new Int32Array(leastCells);
  /** 1: in quotes; 2: with doubled quotes or escapes. */
  flags = new Uint8Array(leastCells);

  clear(): void {
    this.count = 0;
  }

  add(start: number, end: number, quoted: boolean, marked: boolean): void {
    if (this.count === this.starts.length) this.#grow();
    this.starts[this.count] = start;
    this.ends[this.count] = end;
    this.flags[this.count] = (quoted ? 1 : 0) | (marked ? 2 : 0);
    this.count++;
  }

  isQuoted(cell: number): boolean {
    return ((this.flags[cell] ?? 0) & 1) === 1;
  }

  /** Tells whether nothing stands in the cell but blanks outside of quotes. */
  isEmpty(bytes: Buffer, cell: number): boolean {
    let at = this.starts[cell] ?? 0;
    const end = this.ends[cell] ?? 0;
    if (!this.isQuoted(cell)) while (at < end && bytes[at] === SPACE) at++;
    return at === end;
  }

  /** Returns the texts of all cells, quotes and escapes undone. */
  texts(bytes: Buffer, marks: CsvMarks): string[] {
    return Array.from({ length: this.count }, (_, cell) => {
      const text = bytes.toString('utf8', this.starts[cell], this.ends[cell]);
      if ((this.flags[cell] ?? 0) < 2) return text;
      if (marks.escape === BACKSLASH) return text.replace(/\\(.)/gs, '$1');
      const quote = String.fromCharCode(marks.quote);
      return text.replaceAll(quote + quote, quote);
    });
  }

  /** Counts the escapes that escape what needs none, as in `C:\dir`: they may be no escapes. */
  oddEscapes(bytes: Buffer, { quote, escape: escapes, delimiter }: CsvMarks): number {
    if (escapes === quote) return 0;
    let odd = 0;
    for (let cell = 0; cell < this.count; cell++) {
      if ((this.flags[cell] ?? 0) < 2) continue;
      for (let at = this.starts[cell] ?? 0; at < (this.ends[cell] ?? 0); at++) {
        if (bytes[at] !== escapes) continue;
        const next = bytes[++at];
        if (![quote, escapes, delimiter[0], LF, CR].includes(next)) odd++;
      }
    }
    return odd;
  }

  #grow(): void {
    const { starts, ends, flags } = this;
    this.starts = new Int32Array(2 * starts.length);
    this.ends = new Int32Array(2 * ends.length);
    this.flags = new Uint8Array(2 * flags.length);
    this.starts.set(starts);
    this.ends.set(ends);
    this.flags.set(flags);
  }
}

/**
 * Writes records of any dialect as RFC 4180 has them. Cells that mean the same as an empty one become empty. A record with an
 * escape before what means nothing anyway cannot be written: the backslash may belong to the value.
 */
export class PlainRecords {
  /** All records that were written. */
  bytes = Buffer.alloc(0);
  at = 0;

  readonly #marks: CsvMarks;
  readonly #delimiter: number;
  readonly #nulls: readonly Buffer[];
  /** Has 1 for the bytes that need quotes in a plain cell. */
  readonly #special = new Uint8Array(256);

  constructor(dialect: CsvDialect, delimiter: string) {
    this.#marks = marksOf({ delimiter, dialect });
    this.#delimiter = delimiter.charCodeAt(0);
    this.#nulls = dialect.nulls.map((token) => Buffer.from(token)).filter((token) => token.length > 0);
    for (const byte of [this.#delimiter, QUOTE, CR, LF]) this.#special[byte] = 1;
  }

  clear(): void {
    this.at = 0;
  }

  /** Appends the record with these cells; returns false if it cannot be written. */
  write(source: Buffer, cells: CellTable): boolean {
    const start = this.at;
    for (let cell = 0; cell < cells.count; cell++) {
      const [from, to] = [cells.starts[cell] ?? 0, cells.ends[cell] ?? 0];
      // Every byte may be a quote; two around them, and a delimiter.
      this.#reserve(2 * (to - from) + 3);
      if (cell > 0) this.bytes[this.at++] = this.#delimiter;
      const flags = cells.flags[cell] ?? 0;
      if ((flags & 1) === 0 && this.#isNull(source, from, to)) continue;
      if (!this.#writeCell(source, from, to, flags)) {
        this.at = start;
        return false;
      }
    }
    return true;
  }

  /** Appends a record whose cells are given as byte strings. */
  writeCells(cells: readonly string[]): void {
    const written = cells.map((cell) => `"${cell.replaceAll('"', '""')}"`);
    const record = Buffer.from(written.join(String.fromCharCode(this.#delimiter)), 'latin1');
    this.#reserve(record.length);
    this.at += record.copy(this.bytes, this.at);
  }

  #isNull(source: Buffer, from: number, to: number): boolean {
    for (const token of this.#nulls)
      if (token.length === to - from && token.compare(source, from, to) === 0) return true;
    return false;
  }

  #writeCell(source: Buffer, from: number, to: number, flags: number): boolean {
    if (flags < 2) {
      let at = from;
      while (at < to && this.#special[source[at] ?? 0] === 0) at++;
      if (at === to) {
        source.copy(this.bytes, this.at, from, to);
        this.at += to - from;
        return true;
      }
    }
    this.bytes[this.at++] = QUOTE;
    for (let at = from; at < to; at++) {
      let byte = source[at] ?? 0;
      if (flags >= 2 && byte === this.#marks.escape) {
        if (at + 1 >= to) return false;
        const meant = this.#unescape(source[++at] ?? 0, (flags & 1) === 1);
        if (meant < 0) return false;
        byte = meant;
      }
      this.bytes[this.at++] = byte;
      if (byte === QUOTE) this.bytes[this.at++] = QUOTE;
    }
    this.bytes[this.at++] = QUOTE;
    return true;
  }

  /** Returns the byte that an escape and `byte` mean, or -1 if that is in doubt. */
  #unescape(byte: number, inQuotes: boolean): number {
    const { quote, escape: escapes, delimiter, isBlanks, comment } = this.#marks;
    if (byte === quote || byte === escapes) return byte;
    if (inQuotes && escapes === quote) return -1;
    if (byte === delimiter[0] || byte === comment[0] || byte === LF || byte === CR) return byte;
    if (isBlanks && isBlankByte(byte)) return byte;
    return quote < 0 ? (letters.get(byte) ?? -1) : -1;
  }

  #reserve(count: number): void {
    const needed = this.at + count;
    if (needed <= this.bytes.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.bytes.length));
    grown.set(this.bytes.subarray(0, this.at));
    this.bytes = grown;
  }
}

/**
 * Reads a line that RFC 4180 has no reading for because one quote too many stands at the start of a cell, as a slip of a finger or
 * a broken export leaves it: `7,"12,"a, b",c` or `7,""a, b",c`. Returns its cells if the line has exactly as many of them as
 * there are columns when that quote is part of its cell, and no other quote does the same; else `null`.
 */
export function readStrayQuote(line: string, delimiter: string, columns: number): string[] | null {
  // A backslash before a quote shows another dialect, and several lines show that more is wrong.
  if (line.length > MAX_VALUE_BYTES || /\\"|[\r\n]/.test(line)) return null;
  const opening: number[] = [];
  for (let at = line.indexOf('"'); at >= 0; at = line.indexOf('"', at + 1)) {
    if (at > 0 && line[at - 1] !== delimiter) continue;
    if (opening.push(at) > MAX_STRAY_QUOTES) return null;
  }
  const readings = opening.flatMap((stray) => {
    const before = stray === 0 ? [] : cellsOf(line.slice(0, stray - 1), delimiter);
    const [first, ...after] = cellsOf(line.slice(stray + 1), delimiter) ?? [];
    if (before === null || first === undefined || before.length + 1 + after.length !== columns) return [];
    return [{ stray, cells: [...before, `"${first}`, ...after] }];
  });
  const [only] = readings;
  if (readings.length !== 1 || only === undefined) return null;
  // The quote may as well begin a cell that goes on in the next line, or an empty cell.
  const isDoubtful = !line.includes('"', only.stray + 1) || line.startsWith(`"${delimiter}`, only.stray + 1);
  return isDoubtful ? null : only.cells;
}

/** Returns the cells of a line, or `null` if it is malformed. */
function cellsOf(line: string, delimiter: string): string[] | null {
  if (line === '') return [''];
  try {
    const [cells = null] = parse(line, { delimiter }) as string[][];
    return cells;
  } catch {
    return null;
  }
}
