import {
  type CsvMarks,
  DELIMITER,
  delimiterAt,
  ENDS_LINE,
  ESCAPES,
  isInWord,
  MORE,
  meaningsOf,
  ORDINARY,
  QUOTES,
  startsCell,
} from './csv-dialect.ts';
import { CR, LF, type ScanProblem } from './record-scanner.ts';

/** The walker's result for a record beyond the limit. */
export const TOO_LARGE = -2;
/** No quote closes the cell within the limit. */
const NEVER = -3;

/** The positions of a record's cells, without their quotes. */
export interface CellList {
  clear(): void;
  /** `marked`: the cell holds doubled quotes or escapes. */
  add(start: number, end: number, quoted: boolean, marked: boolean): void;
}

/**
 * Walks one CSV record cell by cell. The result is the same whatever bytes follow the record, so that a chunk that ends
 * with it, and the whole file, give the same answer.
 */
export class CsvWalker {
  /** About the record walked last. */
  contentEnd = 0;
  problem: ScanProblem | null = null;
  /** A quoted cell of it was not closed within the limit: it may be a long one, that all after it belongs to. */
  open = false;

  /** The position at which a walk gave TOO_LARGE; `inside` is true within quotes. */
  limit = 0;
  inside = false;

  readonly #marks: CsvMarks;
  readonly #meanings: Uint8Array;
  /** Nobody asks for the cells, quotes are doubled and no apostrophes, and the delimiter is one byte. */
  readonly #isPlain: boolean;
  readonly #maxBytes: number;
  readonly #cells: CellList | null;
  /** `limit` is because of the record's maximum length, not of the bytes that are there. */
  #atMaximum = false;
  #final = false;
  #start = 0;
  #marked = false;

  constructor(marks: CsvMarks, maxBytes: number, cells: CellList | null = null) {
    this.#marks = marks;
    this.#meanings = meaningsOf(marks);
    const isSingle = marks.delimiter.length === 1 && !marks.isBlanks;
    this.#isPlain = cells === null && isSingle && marks.escape === marks.quote && !marks.hasApostrophes;
    this.#maxBytes = maxBytes;
    this.#cells = cells;
  }

  /** End of the record in buf[start, end) with its terminator, MORE (never when `final`) or TOO_LARGE. */
  walk(buf: Buffer, start: number, end: number, final: boolean): number {
    const maximum = start + this.#maxBytes + 1;
    this.limit = Math.min(end, maximum);
    this.#atMaximum = end >= maximum;
    this.#final = final;
    this.#start = start;
    this.problem = null;
    this.open = false;
    this.inside = false;
    this.#cells?.clear();
    const plainStop = this.#isPlain ? this.#findPlainStop(buf, start) : -1;
    const stop = plainStop < 0 ? this.#findStop(buf, start) : plainStop;
    if (stop < 0) return stop;
    this.contentEnd = stop;
    return terminated(buf, stop, end, final);
  }

  /** Returns where the content of a record ends that is well-formed and all there; -1 for any other, which is looked at closely. */
  #findPlainStop(buf: Buffer, start: number): number {
    const meanings = this.#meanings;
    const { quote } = this.#marks;
    const limit = this.limit;
    for (let at = start; ; at++) {
      if (buf[at] === quote) {
        for (at++; ; at += 2) {
          while (at < limit && buf[at] !== quote) at++;
          if (at + 1 >= limit) return -1;
          if (buf[at + 1] !== quote) break;
        }
        at++;
      } else {
        while (at < limit && meanings[buf[at] as number] === ORDINARY) at++;
      }
      if (at >= limit) return -1;
      const meaning = meanings[buf[at] as number];
      if (meaning === ENDS_LINE) return at;
      if (meaning !== DELIMITER) return -1;
    }
  }

  /** Returns where the content of the record ends, or MORE or TOO_LARGE. */
  #findStop(buf: Buffer, start: number): number {
    const { quote, isBlanks } = this.#marks;
    const limit = this.limit;
    let at = isBlanks ? start + delimiterAt(this.#marks, buf, start, limit, true) : start;
    for (;;) {
      if (isBlanks && (at >= limit || this.#meanings[buf[at] as number] === ENDS_LINE))
        return this.#runOut(at);
      if (at < limit && buf[at] === quote) {
        const open = at;
        this.#marked = false;
        at = this.#closeQuote(buf, open + 1);
        if (at === MORE) return MORE;
        if (at === NEVER) return this.#unclosed(buf, open);
        this.#cells?.add(open + 1, at - 1, true, this.#marked);
        const next = this.#boundary(buf, at);
        if (next === MORE) return MORE;
        if (next === NEVER) return this.#recover(buf, open, at);
        at += next;
        if (next === 0) return this.#runOut(at);
      } else {
        const next = this.#findCellEnd(buf, at);
        if (next < 0) return next;
        if (this.#stopped) return next;
        at = next;
      }
    }
  }

  /** `#findCellEnd` gave where the record ends, not where the next cell starts. */
  #stopped = false;

  /** Returns the start of the cell after an unquoted one, or (`#stopped`) the end of the record. */
  #findCellEnd(buf: Buffer, start: number): number {
    const meanings = this.#meanings;
    const limit = this.limit;
    let at = start;
    let marked = false;
    this.#stopped = true;
    for (;;) {
      while (at < limit && meanings[buf[at] as number] === ORDINARY) at++;
      const meaning = at < limit ? meanings[buf[at] as number] : ENDS_LINE;
      if (meaning === DELIMITER) {
        const length = delimiterAt(this.#marks, buf, at, limit, this.#final);
        if (length === MORE) return this.#runOut(limit);
        if (length > 0) {
          this.#cells?.add(start, at, false, marked);
          this.#stopped = false;
          return at + length;
        }
        at++;
      } else if (meaning === ESCAPES) {
        const next = this.#afterEscape(buf, at);
        if (next === MORE) return MORE;
        marked = true;
        at = next;
      } else if (meaning === QUOTES) {
        const isAtEnd = at + 1 >= limit;
        if (isAtEnd && !this.#final && !this.#atMaximum) return MORE;
        if (isAtEnd || !isInWord(this.#marks, buf, at)) {
          this.problem = 'invalid_quote';
          return this.#recover(buf, -1, at);
        }
        at++;
      } else {
        this.#cells?.add(start, Math.min(at, limit), false, marked);
        return this.#runOut(at);
      }
    }
  }

  /** Behind the byte (of CRLF: both) that the escape at `at` makes ordinary; MORE. */
  #afterEscape(buf: Buffer, at: number): number {
    const next = at + 1;
    if (next >= this.limit) return this.#atMaximum || this.#final ? next : MORE;
    if (buf[next] !== CR) return next + 1;
    if (next + 1 >= this.limit) return this.#atMaximum || this.#final ? next + 1 : MORE;
    return buf[next + 1] === LF ? next + 2 : next + 1;
  }

  /** `at` is inside a quoted cell. The position after its closing quote, or MORE or NEVER. */
  #closeQuote(buf: Buffer, start: number): number {
    const { quote, escape: escapes } = this.#marks;
    const limit = this.limit;
    let at = start;
    if (escapes === quote || escapes < 0) {
      for (;;) {
        while (at < limit && buf[at] !== quote) at++;
        if (at >= limit) break;
        if (at + 1 >= limit) return this.#closeAtLimit(at);
        if (isInWord(this.#marks, buf, at)) at++;
        else if (escapes < 0 || buf[at + 1] !== quote) return at + 1;
        else {
          this.#marked = true;
          at += 2;
        }
      }
    } else {
      for (; at < limit; at++) {
        const byte = buf[at];
        if (byte === quote && at + 1 >= limit) return this.#closeAtLimit(at);
        if (byte === quote && !isInWord(this.#marks, buf, at)) return at + 1;
        if (byte !== escapes) continue;
        this.#marked = true;
        at++;
      }
    }
    return this.#atMaximum || this.#final ? NEVER : MORE;
  }

  /** The last byte before the limit is a quote: what follows says what it is, and only the end of the bytes is known. */
  #closeAtLimit(at: number): number {
    if (this.#atMaximum) return NEVER;
    return this.#final ? at + 1 : MORE;
  }

  /** Looks behind a closing quote: the length of a delimiter, 0 at the end of the record, MORE, or NEVER. */
  #boundary(buf: Buffer, at: number): number {
    const limit = this.limit;
    if (at >= limit) return this.#atMaximum || this.#final ? 0 : MORE;
    const meaning = this.#meanings[buf[at] as number];
    if (meaning === ENDS_LINE) return 0;
    if (meaning !== DELIMITER) return NEVER;
    const length = delimiterAt(this.#marks, buf, at, limit, this.#final || this.#atMaximum);
    return length === 0 ? NEVER : length;
  }

  /** The quote at `open` opens a cell that is not closed within the limit: a stray one costs its line, and no more. */
  #unclosed(buf: Buffer, open: number): number {
    this.problem ??= 'unclosed_quote';
    this.open = true;
    this.inside = true;
    let at = open;
    while (at < this.limit && this.#meanings[buf[at] as number] !== ENDS_LINE) at++;
    return this.#runOut(at);
  }

  /**
   * The record is refused; it goes on to a line that cannot be inside of quotes, however they were meant. A quote where a
   * cell may start opens one, even if it closed another. Where a closing quote was followed by something else, quotes may
   * not have been doubled: a later line that closes a cell without having opened one belongs to the record.
   *
   * `open`: the quote that was closed before `from`, with neither delimiter nor line end behind it; -1: none was.
   */
  #recover(buf: Buffer, open: number, from: number): number {
    this.problem = 'invalid_quote';
    let doubtful = open >= 0;
    let at = from;
    let opened = doubtful && this.#startsCell(buf, from - 1) && from - 1 > open ? from - 1 : -1;
    for (;;) {
      if (opened >= 0) {
        at = this.#closeQuote(buf, opened + 1);
        if (at === MORE) return MORE;
        if (at === NEVER) return this.#unclosed(buf, opened);
        const next = this.#boundary(buf, at);
        if (next === MORE) return MORE;
        doubtful ||= next === NEVER;
        opened = next === NEVER && this.#startsCell(buf, at - 1) ? at - 1 : -1;
        continue;
      }
      at = this.#nextMark(buf, at, true);
      if (at === MORE) return MORE;
      if (at < this.limit && this.#meanings[buf[at] as number] === QUOTES) {
        if (this.#startsCell(buf, at)) opened = at;
        else at++;
        continue;
      }
      if (at >= this.limit || !doubtful) return this.#runOut(at);
      const close = this.#findLateClose(buf, at);
      if (close === MORE) return MORE;
      if (close === NEVER) return at;
      at = close;
    }
  }

  /**
   * Behind a quote, after the end of a line at `from`, that closes a cell which no quote has opened: the first line with
   * quotes in it has one before any that may open a cell. NEVER: there is none; MORE.
   */
  #findLateClose(buf: Buffer, from: number): number {
    let quote = this.#nextMark(buf, from, false);
    for (;;) {
      if (quote === MORE) return MORE;
      const isQuote = quote < this.limit && this.#meanings[buf[quote] as number] === QUOTES;
      if (!isQuote || this.#startsCell(buf, quote)) return NEVER;
      const next = this.#boundary(buf, quote + 1);
      if (next !== NEVER) return next === MORE ? MORE : quote + 1;
      quote = this.#nextMark(buf, quote + 1, true);
    }
  }

  /** The next quote (or end of a line, if wanted) outside of quotes from `at` on; limit if there is none; MORE. */
  #nextMark(buf: Buffer, start: number, orLineEnd: boolean): number {
    const meanings = this.#meanings;
    let at = start;
    while (at < this.limit) {
      const meaning = meanings[buf[at] as number] as number;
      if (meaning === QUOTES || (orLineEnd && meaning === ENDS_LINE)) return at;
      at = meaning === ESCAPES ? this.#afterEscape(buf, at) : at + 1;
      if (at === MORE) return MORE;
    }
    return this.#atMaximum || this.#final ? this.limit : MORE;
  }

  #startsCell(buf: Buffer, at: number): boolean {
    return startsCell(this.#marks, buf, at, this.#start);
  }

  /** `at` is where the content of the record ends, if it is before the limit. */
  #runOut(at: number): number {
    if (at < this.limit) return at;
    if (this.#atMaximum) return TOO_LARGE;
    return this.#final ? this.limit : MORE;
  }
}

/** Position after the terminator at `stop`, or MORE if its second byte may be still to come. */
export function terminated(buf: Buffer, stop: number, end: number, final: boolean): number {
  if (stop === end || buf[stop] === LF) return Math.min(stop + 1, end);
  if (stop + 1 < end) return buf[stop + 1] === LF ? stop + 2 : stop + 1;
  return final ? end : MORE;
}

/** LF, CRLF and CR in buf[start, end), which does not begin with the second half of one. */
export function countLines(buf: Buffer, start: number, end: number): number {
  let lines = 0;
  for (let i = start; i < end; i++) {
    const byte = buf[i];
    if (byte === CR || (byte === LF && (i === start || buf[i - 1] !== CR))) lines++;
  }
  return lines;
}
