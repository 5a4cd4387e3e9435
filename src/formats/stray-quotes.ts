/*
 * Lines with one quote too many at the start of a cell, as a slip of a finger or a broken export leaves it: `7,"12,"a, b",c` or
 * `7,""a, b",c`. RFC 4180 has no reading for them. Where the line has exactly as many cells as there are columns if that quote is
 * part of its cell, and there is no other quote of which the same is true, the file says plainly what it means.
 */
import { MAX_STRAY_QUOTES, MAX_VALUE_BYTES } from '../domain/limits.ts';

const QUOTE = '"';

/**
 * The cells of a line that RFC 4180 cannot read, if one quote at the start of a cell is all that is wrong with it; null if not, or
 * if there is any doubt which quote it is. Takes no more than MAX_STRAY_QUOTES walks over the line. `isWhole`: no cell of it goes on
 * in the next line.
 */
export function readStrayQuote(
  line: string,
  delimiter: string,
  columns: number,
  isWhole = false,
): string[] | null {
  // A backslash in front of a quote says that the dialect is another one; several lines, that there is more to the defect.
  if (line.length > MAX_VALUE_BYTES || /\\"|[\r\n]/.test(line)) return null;
  const opening = findOpeningQuotes(line, delimiter);
  if (opening.length > MAX_STRAY_QUOTES) return null;
  const readings = opening
    .map((stray) => new StrayReading(line, delimiter, stray, isWhole))
    .filter((reading) => reading.cells?.length === columns);
  const [only] = readings;
  return readings.length === 1 && only?.isDoubtful === false ? only.cells : null;
}

/** Positions of the quotes with which a cell may start; one more than are looked at, at most. */
function findOpeningQuotes(line: string, delimiter: string): number[] {
  const found: number[] = [];
  for (let at = line.indexOf(QUOTE); at >= 0; at = line.indexOf(QUOTE, at + 1)) {
    if (at === 0 || line[at - 1] === delimiter) found.push(at);
    if (found.length > MAX_STRAY_QUOTES) break;
  }
  return found;
}

/** A line read as if the quote at `stray` were a part of its cell, and all others were as RFC 4180 wants them. */
class StrayReading {
  /** Null if it cannot be read so. */
  readonly cells: string[] | null;
  /** The quote may as well begin a cell that goes on in the next line, for none follows it; or an empty cell. */
  readonly isDoubtful: boolean;
  readonly #line: string;
  readonly #delimiter: string;

  constructor(line: string, delimiter: string, stray: number, isWhole: boolean) {
    this.#line = line;
    this.#delimiter = delimiter;
    const mayGoOn = !isWhole && !line.includes(QUOTE, stray + 1);
    this.isDoubtful = mayGoOn || line.startsWith(`${QUOTE}${delimiter}`, stray + 1);
    this.cells = this.#read(stray);
  }

  #read(stray: number): string[] | null {
    const cells: string[] = [];
    let wasRead = false;
    for (let start = 0; start <= this.#line.length; ) {
      const isStray = start === stray;
      const isQuoted = this.#line[isStray ? start + 1 : start] === QUOTE;
      const end = isQuoted ? this.#endOfQuoted(isStray ? start + 1 : start) : this.#endOfText(start, isStray);
      if (end < 0) return null;
      wasRead ||= isStray;
      const written = this.#line.slice(isStray ? start + 1 : start, end);
      cells.push((isStray ? QUOTE : '') + (isQuoted ? unquote(written) : written));
      start = end + 1;
    }
    return wasRead ? cells : null;
  }

  /** Where a cell without quotes ends; -1 if there are quotes in it, but for the stray one. */
  #endOfText(start: number, isStray: boolean): number {
    const found = this.#line.indexOf(this.#delimiter, start);
    const end = found < 0 ? this.#line.length : found;
    const quote = this.#line.indexOf(QUOTE, isStray ? start + 1 : start);
    return quote >= 0 && quote < end ? -1 : end;
  }

  /** Where a quoted cell ends, behind its closing quote; -1 if something else than a delimiter stands there. */
  #endOfQuoted(start: number): number {
    const line = this.#line;
    for (let at = start + 1; ; at += 2) {
      at = line.indexOf(QUOTE, at);
      if (at < 0) return -1;
      if (line[at + 1] === QUOTE) continue;
      return at + 1 === line.length || line[at + 1] === this.#delimiter ? at + 1 : -1;
    }
  }
}

function unquote(written: string): string {
  return written.slice(1, -1).replaceAll('""', QUOTE);
}
