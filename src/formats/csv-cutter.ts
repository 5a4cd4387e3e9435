import {
  type CsvDialect,
  type CsvMarks,
  delimiterAt,
  isBlankByte,
  isInWord,
  marksOf,
} from './csv-dialect.ts';
import { countLines } from './csv-walker.ts';
import { CR, LF } from './record-scanner.ts';

const SPACE = 32;
const BACKSLASH = 92;

/** A quoted cell whose end is not found within so much has none. */
const longCellBytes = 64 * 1024;

/**
 * Cuts records of any dialect into cells, where a few of them are looked at: to find the dialect, and the names in a header.
 * Records end where the scanners say they do (`createRecordScanner`), as far as they are well-formed; one that is not ends with
 * its first line. Linear in the bytes, whatever they are.
 */
export class CsvCutter {
  /** Of the record cut last: cells. */
  count = 0;
  /** Cells in quotes. */
  quoted = 0;
  /** A quote where none may be, or one that is never closed. */
  isBad = false;
  /** Escapes of what needs none, as in `C:\dir`: they may be no escapes. */
  oddEscapes = 0;
  /** A line to be passed over. */
  isComment = false;
  contentEnd = 0;
  lines = 0;

  readonly #bytes: Buffer;
  readonly #isWhole: boolean;
  readonly #marks: CsvMarks;
  readonly #quote: number;
  readonly #escape: number;
  /** Per cell, quotes included. */
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];

  /** `isWhole`: nothing follows `bytes` in the file. */
  constructor(bytes: Buffer, isWhole: boolean, dialect: CsvDialect) {
    this.#bytes = bytes;
    this.#isWhole = isWhole;
    this.#marks = marksOf({ delimiter: dialect.delimiter, dialect });
    this.#quote = this.#marks.quote;
    this.#escape = this.#marks.escape;
  }

  /** Where the record at `start` ends, its terminator included; -1 if it goes on after the bytes. */
  next(start: number): number {
    this.count = 0;
    this.quoted = 0;
    this.isBad = false;
    this.oddEscapes = 0;
    this.isComment = this.#startsComment(start);
    const stop = this.isComment ? this.#endOfLine(start) : this.#cut(start);
    if (stop < 0) return -1;
    this.contentEnd = stop;
    return this.#terminated(start, stop);
  }

  /** The cell as it is meant, its quotes and escapes undone. */
  cell(index: number): string {
    const bytes = this.#bytes;
    const start = this.#starts[index] as number;
    const end = this.#ends[index] as number;
    const quote = this.#quote;
    const isQuoted = quote >= 0 && start < end && bytes[start] === quote && !this.isBad;
    const text = isQuoted ? bytes.toString('utf8', start + 1, end - 1) : bytes.toString('utf8', start, end);
    if (this.#escape === BACKSLASH) return text.replace(/\\(.)/gs, '$1');
    const mark = String.fromCharCode(quote);
    return isQuoted && this.#escape >= 0 ? text.replaceAll(mark + mark, mark) : text;
  }

  cells(): string[] {
    return Array.from({ length: this.count }, (_, index) => this.cell(index));
  }

  /** Whether nothing but blanks stands in the cell, or nothing between its quotes. */
  isEmpty(index: number): boolean {
    const start = this.#starts[index] as number;
    const end = this.#ends[index] as number;
    if (end - start === 2 && this.#bytes[start] === this.#quote) return true;
    let at = start;
    while (at < end && this.#bytes[at] === SPACE) at++;
    return at === end;
  }

  /** Whether the cell stands in quotes. */
  isQuoted(index: number): boolean {
    const start = this.#starts[index] as number;
    return start < (this.#ends[index] as number) && this.#bytes[start] === this.#quote;
  }

  /** Whether a blank stands at the start of the cell, and something other than one after it. */
  startsWithBlank(index: number): boolean {
    const start = this.#starts[index] as number;
    return (
      start < (this.#ends[index] as number) &&
      this.#bytes[start] === SPACE &&
      this.#bytes[start + 1] !== SPACE
    );
  }

  /** Where the cells of the record at `start` have their end; -1 if more bytes are needed. */
  #cut(start: number): number {
    const bytes = this.#bytes;
    const end = bytes.length;
    let at = this.#marks.isBlanks ? start + this.#delimiterAt(start) : start;
    for (;;) {
      const from = at;
      if (at < end && bytes[at] === this.#quote) {
        at = this.#closeQuote(at + 1);
        if (at < 0) return at === -1 ? -1 : this.#badLine(start);
        this.quoted++;
        if (at < end && bytes[at] !== LF && bytes[at] !== CR && this.#delimiterAt(at) === 0)
          return this.#badLine(start);
      } else at = this.#skipCell(at);
      this.#starts[this.count] = from;
      this.#ends[this.count] = at;
      this.count++;
      if (at >= end) return this.#isWhole ? at : -1;
      if (bytes[at] === LF || bytes[at] === CR) return at;
      at += this.#delimiterAt(at);
      // Blanks at the end of a line stand before nothing.
      if (this.#marks.isBlanks && (at >= end || bytes[at] === LF || bytes[at] === CR))
        return at >= end && !this.#isWhole ? -1 : at;
    }
  }

  /** The end of an unquoted cell. */
  #skipCell(start: number): number {
    const bytes = this.#bytes;
    const { delimiter, isBlanks } = this.#marks;
    const first = delimiter[0] as number;
    const quote = this.#quote;
    // A quote escapes nothing but a quote, and that in quotes only.
    const escapes = this.#escape === quote ? -1 : this.#escape;
    let at = start;
    for (; at < bytes.length; at++) {
      const byte = bytes[at] as number;
      if (byte === LF || byte === CR) break;
      if ((byte === first || (isBlanks && isBlankByte(byte))) && this.#delimiterAt(at) > 0) break;
      if (byte === quote) this.isBad ||= !isInWord(this.#marks, bytes, at);
      else if (byte === escapes) at = this.#skipEscaped(at);
    }
    return Math.min(at, bytes.length);
  }

  /** Where the character stands that the escape at `at` makes an ordinary one. */
  #skipEscaped(at: number): number {
    const next = this.#bytes[at + 1];
    const isNeeded =
      next === this.#quote ||
      next === this.#escape ||
      next === this.#marks.delimiter[0] ||
      next === LF ||
      next === CR;
    if (!isNeeded) this.oddEscapes++;
    return at + 1;
  }

  /** Length of the delimiter that stands there, or 0. */
  #delimiterAt(at: number): number {
    return delimiterAt(this.#marks, this.#bytes, at, this.#bytes.length, true);
  }

  /** The position after the closing quote; -1 if more bytes are needed, -2 if there is none. */
  #closeQuote(start: number): number {
    const bytes = this.#bytes;
    const quote = this.#quote;
    const escapes = this.#escape;
    let at = start;
    for (; at < bytes.length; at++) {
      const byte = bytes[at];
      if (byte === quote) {
        if (isInWord(this.#marks, bytes, at)) continue;
        if (escapes !== quote || bytes[at + 1] !== quote) return at + 1;
        at++;
      } else if (byte === escapes) at = this.#skipEscaped(at);
    }
    if (this.#isWhole || bytes.length - start > longCellBytes) return -2;
    return -1;
  }

  #badLine(start: number): number {
    this.isBad = true;
    return this.#endOfLine(start);
  }

  #endOfLine(start: number): number {
    const bytes = this.#bytes;
    let at = start;
    while (at < bytes.length && bytes[at] !== LF && bytes[at] !== CR) at++;
    return at === bytes.length && !this.#isWhole ? -1 : at;
  }

  #startsComment(start: number): boolean {
    const { comment } = this.#marks;
    return comment.length > 0 && this.#bytes.subarray(start, start + comment.length).equals(comment);
  }

  #terminated(start: number, stop: number): number {
    const bytes = this.#bytes;
    const end = bytes.length;
    if (stop === end) {
      this.lines = countLines(bytes, start, stop);
      return end;
    }
    if (bytes[stop] === CR && stop + 1 === end && !this.#isWhole) return -1;
    const next = bytes[stop] === CR && bytes[stop + 1] === LF ? stop + 2 : stop + 1;
    this.lines = this.quoted === 0 ? 1 : countLines(bytes, start, next);
    return next;
  }
}
