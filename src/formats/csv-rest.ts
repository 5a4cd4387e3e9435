import {
  type CsvMarks,
  delimiterAt,
  ENDS_LINE,
  ESCAPES,
  isInWord,
  MORE,
  meaningsOf,
  QUOTES,
  startsCell,
} from './csv-dialect.ts';
import { countLines, terminated } from './csv-walker.ts';
import { CR, LF } from './record-scanner.ts';

/** No quote closes the cell. */
const NEVER = -2;

/**
 * The rest of a CSV record that is too large to be kept, walked as its bytes come: which line ends it, and whether that
 * line may be inside of quotes (`open`).
 */
export class CsvRest {
  open = false;
  lines = 0;
  contentEnd = 0;
  keepFrom = 0;

  readonly #marks: CsvMarks;
  readonly #meanings: Uint8Array;
  readonly #lookBehind: number;
  #inside = false;
  /** The next call begins where the record does. */
  #isStart = true;
  /** Bytes behind `keepFrom` that were walked already. */
  #ahead = 0;
  /** Line ends that an escape made ordinary. */
  #lines = 0;

  constructor(marks: CsvMarks) {
    this.#marks = marks;
    this.#meanings = meaningsOf(marks);
    // Whoever looks for a closing quote in the same bytes needs those before it as well.
    this.#lookBehind = 2 * marks.delimiter.length + 1;
  }

  /** Begins at the start of a record. */
  begin(): void {
    this.#inside = false;
    this.#isStart = true;
    this.#ahead = 0;
    this.#lines = 0;
  }

  /** The record at `start` was walked up to `at`, and is faulty. */
  resume(buf: Buffer, start: number, at: number, inside: boolean): void {
    const from = buf[at - 1] === CR ? at - 1 : at;
    this.#inside = inside;
    this.#isStart = false;
    this.#ahead = from - start;
    this.#lines = countLines(buf, start, from);
  }

  /** Like `RecordScanner.skip`. */
  skip(buf: Buffer, start: number, end: number, final: boolean): number {
    let at = start + this.#ahead;
    while (at < end) {
      const meaning = this.#meanings[buf[at] as number];
      if (meaning === ENDS_LINE) {
        const recordEnd = terminated(buf, at, end, final);
        if (recordEnd < 0) break;
        return this.#endAt(at, recordEnd);
      }
      const next = this.#step(buf, start, at, end, final);
      if (next < 0) break;
      at = next;
    }
    if (at >= end && final) return this.#endAt(end, end);
    this.#keep(start, at);
    this.contentEnd = end;
    return -1;
  }

  /** Like `RecordScanner.findClose`. */
  findClose(buf: Buffer, lowest: number, start: number, end: number, final: boolean): number {
    let at = start;
    while (at < end) {
      const quote = this.#nextQuote(buf, at, end);
      if (quote < 0) {
        at = final ? end : -quote - 1;
        break;
      }
      const next = this.#closedAt(buf, lowest, quote, end, final);
      if (next === MORE) {
        at = quote;
        break;
      }
      if (next === NEVER) return NEVER;
      if (next > 0) {
        this.begin();
        this.#isStart = false;
        return next;
      }
      at = quote + 2;
    }
    this.keepFrom = at;
    return final ? NEVER : -1;
  }

  #endAt(contentEnd: number, recordEnd: number): number {
    this.contentEnd = contentEnd;
    this.open = this.#inside;
    this.lines = this.#lines + (recordEnd > contentEnd ? 1 : 0);
    return recordEnd;
  }

  #keep(start: number, at: number): void {
    this.keepFrom = Math.max(start, at - this.#lookBehind);
    this.#ahead = at - this.keepFrom;
    if (this.keepFrom > start) this.#isStart = false;
  }

  /** The byte at `at` ends no line. Where to go on, or MORE. */
  #step(buf: Buffer, start: number, at: number, end: number, final: boolean): number {
    const meaning = this.#meanings[buf[at] as number];
    if (meaning === ESCAPES) return this.#afterEscape(buf, at, end, final);
    if (meaning !== QUOTES) return at + 1;
    if (!this.#inside) {
      const lowest = this.#isStart ? start : start - 1;
      if (startsCell(this.#marks, buf, at, lowest)) this.#inside = true;
      return at + 1;
    }
    const next = this.#closedAt(buf, start - 1, at, end, final);
    if (next === MORE) return MORE;
    if (next === 0) return at + 2;
    this.#inside = next === NEVER;
    return at + 1;
  }

  /** The quote at `at`, inside of quotes: the position behind it if it closes, 0 if it is doubled or in a word, NEVER if it opens a cell; MORE. */
  #closedAt(buf: Buffer, lowest: number, at: number, end: number, final: boolean): number {
    const { quote, escape: escapes } = this.#marks;
    const next = at + 1;
    if (next >= end) return final ? next : MORE;
    if ((escapes === quote && buf[next] === quote) || isInWord(this.#marks, buf, at)) return 0;
    if (this.#meanings[buf[next] as number] === ENDS_LINE) return next;
    const length = delimiterAt(this.#marks, buf, next, end, final);
    if (length === MORE) return MORE;
    return length === 0 && startsCell(this.#marks, buf, at, lowest) ? NEVER : next;
  }

  #afterEscape(buf: Buffer, at: number, end: number, final: boolean): number {
    const next = at + 1;
    if (next >= end) return final ? end : MORE;
    let to = next + 1;
    if (buf[next] === CR) {
      if (to >= end && !final) return MORE;
      if (buf[to] === LF && to < end) to++;
    }
    this.#lines += countLines(buf, next, to);
    return to;
  }

  /** The next quote that nothing escapes; the position to go on from, negative and less 1, if there is none. */
  #nextQuote(buf: Buffer, start: number, end: number): number {
    const { quote, escape: escapes } = this.#marks;
    if (escapes === quote || escapes < 0) {
      const at = buf.indexOf(quote, start);
      return at < 0 || at >= end ? -end - 1 : at;
    }
    let at = start;
    while (at < end) {
      if (buf[at] === quote) return at;
      if (buf[at] === escapes && at + 1 >= end) return -at - 1;
      at += buf[at] === escapes ? 2 : 1;
    }
    return -end - 1;
  }
}
