import { type CsvDialect, type CsvMarks, isBlankByte, marksOf } from './csv-dialect.ts';
import type { CellList } from './csv-walker.ts';
import { CR, LF } from './record-scanner.ts';

const QUOTE = 0x22;
const leastCells = 1024;

/** What a letter behind a backslash means where there are no quotes, as databases write it. */
const letters: ReadonlyMap<number, number> = new Map(
  Object.entries({ n: '\n', t: '\t', r: '\r', b: '\b', f: '\f', v: '\v', '0': '\0' }).map(([from, to]) => [
    from.charCodeAt(0),
    to.charCodeAt(0),
  ]),
);

/** The cells of one record. */
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
 * Writes records of any dialect as RFC 4180 has them. Cells that mean the same as an empty one become empty; an escape
 * that makes an ordinary byte of what means nothing anyway is in doubt, and so the record is.
 */
export class PlainRecords {
  /** All records written so far; grows. */
  bytes = Buffer.alloc(0);
  at = 0;
  /** The record written last has a quote. */
  quoted = false;

  readonly #marks: CsvMarks;
  readonly #delimiter: number;
  readonly #nulls: readonly Buffer[];
  /** 1 for the bytes that a plain cell needs quotes for. */
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

  /** Whether the record whose cells these are could be written, behind what is there. */
  write(source: Buffer, cells: CellTable): boolean {
    const start = this.at;
    this.quoted = false;
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

  /** Writes a record whose cells, byte strings, are known. */
  writeCells(cells: readonly string[]): void {
    const written = cells.map((cell) => `"${cell.replaceAll('"', '""')}"`);
    const record = Buffer.from(written.join(String.fromCharCode(this.#delimiter)), 'latin1');
    this.#reserve(record.length);
    this.at += record.copy(this.bytes, this.at);
    this.quoted = true;
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
    this.quoted = true;
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

  /** The byte that is meant by an escape and `byte`; -1: that is in doubt. */
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
