import type { CellTable } from './csv-cell-table.ts';
import { type CsvMarks, isApostrophe, isBlankByte } from './csv-dialect.ts';
import { CR, countLines, LF, MORE, type ScanProblem, terminated } from './record-scanner.ts';

export const TOO_LARGE = -2;
/** Result of a search: no quote closes the cell, or other text follows the closing quote. */
const NEVER = -3;

const ORDINARY = 0;
const DELIMITER = 1;
const QUOTES = 2;
const ESCAPES = 3;
const ENDS_LINE = 4;

const TAB = 9;

/**
 * Reads CSV byte by byte, in any dialect. `walk` finds the end and cells of a record. `skip` and
 * `findClose` find the end of a record too large for memory. `walk` reads nothing before the
 * record, so its result is the same in a chunk as in the file.
 */
export class CsvWalker {
  contentEnd = 0;
  problem: ScanProblem | null = null;
  /** True if a quoted cell may continue in the next bytes. */
  isUnclosed = false;
  /** See `RecordScanner`. */
  lines = 0;
  keepFrom = 0;

  readonly #marks: CsvMarks;
  readonly #meanings = new Uint8Array(256);
  readonly #maxBytes: number;
  readonly #cells: CellTable | null;
  /** End of the bytes to read: the record's maximum if `#atMaximum`, otherwise the buffer's end. */
  #limit = 0;
  #atMaximum = false;
  #final = false;
  /**
   * Start of the record, or of the bytes that are kept of it. A delimiter before this position does
   * not count.
   */
  #lowest = 0;
  #marked = false;
  /**
   * State of `skip`. `#inside`: in quotes. `#isStart`: at the record's start. `#ahead`,
   * `#aheadLines`: bytes and lines read after `keepFrom`.
   */
  #inside = false;
  #isStart = true;
  #ahead = 0;
  #aheadLines = 0;

  constructor(marks: CsvMarks, maxBytes: number, cells: CellTable | null = null) {
    this.#marks = marks;
    this.#maxBytes = maxBytes;
    this.#cells = cells;
    const meanings = this.#meanings;
    meanings[marks.delimiter[0] ?? 0] = DELIMITER;
    if (marks.isBlanks) meanings[TAB] = DELIMITER;
    if (marks.escape >= 0) meanings[marks.escape] = ESCAPES;
    if (marks.quote >= 0) meanings[marks.quote] = QUOTES;
    meanings[LF] = ENDS_LINE;
    meanings[CR] = ENDS_LINE;
  }

  /**
   * Walks through a record. Returns the end of the record with its terminator, MORE if more bytes
   * are needed (never when `final`), or TOO_LARGE.
   */
  walk(buf: Buffer, start: number, end: number, final: boolean): number {
    const maximum = start + this.#maxBytes + 1;
    this.#limit = Math.min(end, maximum);
    this.#atMaximum = end >= maximum;
    this.#final = final;
    this.#lowest = start;
    this.problem = null;
    this.isUnclosed = false;
    this.#cells?.clear();
    const stop = this.#findStop(buf, start);
    if (stop < 0) return stop;
    this.contentEnd = stop;
    return terminated(buf, stop, end, final);
  }

  /**
   * Returns the end of the record's content, MORE if more bytes are needed, or TOO_LARGE. A
   * malformed record ends at a line end that is outside quotes however its quotes are read.
   * Therefore, a quote that may open a cell opens one, even if it may also close one. Text after a
   * closing quote suggests undoubled quotes (`mayContinue`), so the record includes a later line
   * that closes a cell without opening one.
   */
  #findStop(buf: Buffer, start: number): number {
    const meanings = this.#meanings;
    const { quote, isBlanks, delimiter } = this.#marks;
    const limit = this.#limit;
    const isSingle = delimiter.length === 1 && !isBlanks;
    let at = isBlanks ? start + this.#delimiterAt(buf, start) : start;
    /** Start of the current cell, or -1 after a quoted cell. */
    let cell = at;
    let isMarked = false;
    let mayContinue = false;
    for (;;) {
      if (at === cell && at < limit && buf[at] === quote) {
        const open = at;
        at = this.#closeQuote(buf, open + 1);
        if (at === MORE) return MORE;
        if (at === NEVER) return this.#unclosed(buf, open);
        const isDelimited = isSingle && at < limit && meanings[buf[at] as number] === DELIMITER;
        const next = isDelimited ? 1 : this.#boundary(buf, at);
        if (next === MORE) return MORE;
        if (next === NEVER) {
          this.problem = 'invalid_quote';
          mayContinue = true;
          cell = this.#startsCell(buf, at - 1) ? --at : -1;
        } else {
          if (this.problem === null) this.#cells?.add(open + 1, at - 1, true, this.#marked);
          at += next;
          cell = next === 0 ? -1 : at;
        }
        continue;
      }
      while (at < limit && meanings[buf[at] as number] === ORDINARY) at++;
      const meaning = at < limit ? meanings[buf[at] as number] : ENDS_LINE;
      if (meaning === DELIMITER) {
        const length = isSingle ? 1 : this.#delimiterAt(buf, at);
        if (length === MORE) return this.#runOut(limit);
        if (length > 0) {
          if (cell >= 0 && this.problem === null) this.#cells?.add(cell, at, false, isMarked);
          cell = at + length;
          isMarked = false;
        }
        at += Math.max(1, length);
      } else if (meaning === ESCAPES) {
        at = this.#afterEscape(buf, at);
        if (at === MORE) return MORE;
        isMarked = true;
      } else if (meaning === QUOTES) {
        if (at + 1 >= limit && !this.#final && !this.#atMaximum) return MORE;
        if (at + 1 >= limit || !isApostrophe(this.#marks, buf, at)) {
          this.problem = 'invalid_quote';
          if (this.#startsCell(buf, at)) {
            cell = at;
            continue;
          }
        }
        at++;
      } else {
        if (cell >= 0 && this.problem === null && !(isBlanks && at === cell))
          this.#cells?.add(cell, at, false, isMarked);
        if (at >= limit || !mayContinue) return this.#runOut(at);
        const close = this.#findLateClose(buf, at);
        if (close < 0) return close === MORE ? MORE : at;
        at = close;
        cell = -1;
      }
    }
  }

  /**
   * Called when the bytes may be used up. Returns `at` if it is below the limit. Otherwise, returns
   * TOO_LARGE if the record has its maximum size, the limit if no bytes follow (`final`), or MORE
   * if more bytes are needed.
   */
  #runOut(at: number): number {
    if (at < this.#limit) return at;
    if (this.#atMaximum) return TOO_LARGE;
    return this.#final ? this.#limit : MORE;
  }

  /**
   * Searches for the closing quote of a cell. Returns the position after it, NEVER if there is
   * none, or MORE if more bytes are needed.
   */
  #closeQuote(buf: Buffer, start: number): number {
    const { quote, escape: escapes } = this.#marks;
    const limit = this.#limit;
    this.#marked = false;
    for (let at = start; at < limit; at++) {
      if (escapes === quote) while (at < limit && buf[at] !== quote) at++;
      else while (at < limit && buf[at] !== quote && buf[at] !== escapes) at++;
      if (at >= limit) break;
      if (buf[at] === quote) {
        if (at + 1 >= limit) {
          // The byte that decides what the quote means has not arrived yet.
          if (this.#atMaximum) return NEVER;
          return this.#final ? limit : MORE;
        }
        if (this.#marks.hasApostrophes && isApostrophe(this.#marks, buf, at)) continue;
        if (escapes !== quote || buf[at + 1] !== quote) return at + 1;
      }
      this.#marked = true;
      at++;
    }
    return this.#atMaximum || this.#final ? NEVER : MORE;
  }

  /** The record ends with the line of the unclosed cell, so a stray quote costs only that line. */
  #unclosed(buf: Buffer, open: number): number {
    this.problem ??= 'unclosed_quote';
    this.isUnclosed = true;
    let at = open;
    while (at < this.#limit && this.#meanings[buf[at] as number] !== ENDS_LINE) at++;
    return this.#runOut(at);
  }

  /**
   * Searches for a quote that closes a cell. The search begins at the line start `from` and ends
   * with the first line that contains a quote. Returns the position after the closing quote, MORE
   * if more bytes are needed, or NEVER if there is no such quote or an earlier quote opens a cell.
   */
  #findLateClose(buf: Buffer, from: number): number {
    let isLastLine = false;
    let at = from;
    while (at < this.#limit) {
      const meaning = this.#meanings[buf[at] as number];
      if (meaning === QUOTES) {
        if (this.#startsCell(buf, at)) return NEVER;
        const next = this.#boundary(buf, at + 1);
        if (next !== NEVER) return next === MORE ? MORE : at + 1;
        isLastLine = true;
      } else if (meaning === ENDS_LINE && isLastLine) return NEVER;
      at = meaning === ESCAPES ? this.#afterEscape(buf, at) : at + 1;
      if (at === MORE) return MORE;
    }
    return this.#atMaximum || this.#final ? NEVER : MORE;
  }

  /**
   * Prepares to skip the record. If a walk found it faulty, skipping starts where the walk ended.
   */
  begin(buf: Buffer, start: number, wasWalked: boolean): void {
    const isFaulty = wasWalked && this.problem !== null;
    const at = isFaulty ? this.#limit : start;
    const from = isFaulty && buf[at - 1] === CR ? at - 1 : at;
    this.#inside = isFaulty && this.isUnclosed;
    this.#isStart = !isFaulty;
    this.#ahead = from - start;
    this.#aheadLines = countLines(buf, start, from);
  }

  skip(buf: Buffer, start: number, end: number, final: boolean): number {
    this.#look(end, final, this.#isStart ? start : start - 1);
    let at = start + this.#ahead;
    while (at < end) {
      const meaning = this.#meanings[buf[at] as number];
      if (meaning === ENDS_LINE) {
        const recordEnd = terminated(buf, at, end, final);
        if (recordEnd < 0) break;
        return this.#endRest(at, recordEnd);
      }
      let next = at + 1;
      if (meaning === ESCAPES) {
        next = this.#afterEscape(buf, at);
        if (next !== MORE) this.#aheadLines += countLines(buf, at + 1, next);
      } else if (meaning === QUOTES && !this.#inside) this.#inside = this.#startsCell(buf, at);
      else if (meaning === QUOTES) {
        const close = this.#closeAt(buf, at);
        if (close === MORE) break;
        if (close === 0) next++;
        else this.#inside = close === NEVER;
      }
      if (next === MORE) break;
      at = next;
    }
    if (at >= end && final) return this.#endRest(end, end);
    // A later search for a closing quote needs the last bytes before `at`.
    this.keepFrom = Math.max(start, at - 2 * this.#marks.delimiter.length - 1);
    this.#ahead = at - this.keepFrom;
    if (this.keepFrom > start) this.#isStart = false;
    this.contentEnd = end;
    return MORE;
  }

  #endRest(contentEnd: number, recordEnd: number): number {
    this.contentEnd = contentEnd;
    this.isUnclosed = this.#inside;
    this.lines = this.#aheadLines + (recordEnd > contentEnd ? 1 : 0);
    return recordEnd;
  }

  findClose(buf: Buffer, lowest: number, start: number, end: number, final: boolean): number {
    const { quote, escape: escapes } = this.#marks;
    this.#look(end, final, lowest);
    let at = start;
    while (at < end) {
      const byte = buf[at];
      if (byte !== quote) {
        if (byte === escapes && at + 1 >= end) break;
        at += byte === escapes ? 2 : 1;
        continue;
      }
      const close = this.#closeAt(buf, at);
      if (close === MORE) break;
      if (close > 0) {
        this.#inside = false;
        this.#isStart = false;
        this.#ahead = 0;
        this.#aheadLines = 0;
        return close;
      }
      if (close === NEVER) return -2;
      at += 2;
    }
    this.keepFrom = at;
    return final ? -2 : -1;
  }

  #look(end: number, final: boolean, lowest: number): void {
    this.#limit = end;
    this.#atMaximum = false;
    this.#final = final;
    this.#lowest = lowest;
  }

  /**
   * Finds out what the quote at `at` means. If it closes the cell, returns the position after it.
   * Otherwise, returns 0 if the quote is part of the cell, NEVER if it may open a cell, and MORE if
   * more bytes are needed.
   */
  #closeAt(buf: Buffer, at: number): number {
    const { quote, escape: escapes } = this.#marks;
    const next = at + 1;
    if (next >= this.#limit) return this.#final ? next : MORE;
    if ((escapes === quote && buf[next] === quote) || isApostrophe(this.#marks, buf, at)) return 0;
    const boundary = this.#boundary(buf, next);
    if (boundary === MORE) return MORE;
    return boundary === NEVER && this.#startsCell(buf, at) ? NEVER : next;
  }

  /**
   * Finds out whether a cell ends at `at`. Returns the delimiter's length, 0 at the end of the
   * record, NEVER before other text, or MORE if more bytes are needed.
   */
  #boundary(buf: Buffer, at: number): number {
    if (at >= this.#limit) return this.#atMaximum || this.#final ? 0 : MORE;
    const meaning = this.#meanings[buf[at] as number];
    if (meaning === ENDS_LINE) return 0;
    if (meaning !== DELIMITER) return NEVER;
    const length = this.#delimiterAt(buf, at);
    if (length === MORE && this.#atMaximum) return NEVER;
    return length === 0 ? NEVER : length;
  }

  /**
   * Returns the length of the delimiter at `at`, 0 if there is none, or MORE if more bytes are
   * needed.
   */
  #delimiterAt(buf: Buffer, at: number): number {
    const { delimiter, isBlanks } = this.#marks;
    if (isBlanks) {
      let to = at;
      while (to < this.#limit && isBlankByte(buf[to])) to++;
      return to - at;
    }
    for (let i = 0; i < delimiter.length; i++) {
      if (at + i >= this.#limit) return this.#final ? 0 : MORE;
      if (buf[at + i] !== delimiter[i]) return 0;
    }
    return delimiter.length;
  }

  /**
   * Returns the position after the byte (or CRLF) that follows the escape, or MORE if more bytes
   * are needed.
   */
  #afterEscape(buf: Buffer, at: number): number {
    const next = at + 1;
    const isKnown = this.#atMaximum || this.#final;
    if (next >= this.#limit) return isKnown ? next : MORE;
    if (buf[next] !== CR) return next + 1;
    if (next + 1 >= this.#limit) return isKnown ? next + 1 : MORE;
    return buf[next + 1] === LF ? next + 2 : next + 1;
  }

  #startsCell(buf: Buffer, at: number): boolean {
    if (at === this.#lowest) return true;
    const { delimiter, isBlanks } = this.#marks;
    const before = buf[at - 1];
    if (before === LF || before === CR || (isBlanks && isBlankByte(before))) return true;
    const from = at - delimiter.length;
    return from >= Math.max(0, this.#lowest) && delimiter.compare(buf, from, at) === 0;
  }
}
