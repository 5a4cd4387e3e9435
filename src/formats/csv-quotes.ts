import { CR, LF, type ScanProblem } from './record-scanner.ts';

const QUOTE = 34;
/** Found by the inner loops instead of a position. */
const MORE = -1;
const BAD = -2;

/**
 * Walks a CSV record that contains a quote, cell by cell. Its first line is known to end at `lineEnd` and to be
 * no longer than the limit. The result is the same whatever bytes follow the record, so that a chunk that
 * ends with this record, and the whole file, give the same answer.
 */
export class CsvQuotes {
  contentEnd = 0;
  problem: ScanProblem | null = null;

  readonly #maxBytes: number;
  /** 1 for the bytes that mean something in an unquoted cell. */
  readonly #special = new Uint8Array(256);
  /** The record may contain bytes before this only; and whether that is because of its maximum length. */
  #limit = 0;
  #atMaximum = false;
  #final = false;
  #invalid = false;

  constructor(delimiterByte: number, maxBytes: number) {
    this.#maxBytes = maxBytes;
    for (const byte of [delimiterByte, QUOTE, CR, LF]) this.#special[byte] = 1;
  }

  /** End of the record with its terminator, or -1 if more bytes are needed. */
  walk(buf: Buffer, start: number, end: number, lineStop: number, lineEnd: number, final: boolean): number {
    const maximum = start + this.#maxBytes + 1;
    this.#limit = Math.min(end, maximum);
    this.#atMaximum = end >= maximum;
    this.#final = final;
    this.#invalid = false;
    const stop = this.#findStop(buf, start, lineStop);
    if (stop === MORE) return -1;
    if (stop !== BAD) {
      const recordEnd = terminated(buf, stop, end, final);
      if (recordEnd < 0) return -1;
      this.contentEnd = stop;
      this.problem = this.#invalid ? 'invalid_quote' : null;
      return recordEnd;
    }
    this.contentEnd = lineStop;
    this.problem = this.#invalid ? 'invalid_quote' : 'unclosed_quote';
    return lineEnd;
  }

  /** LF, CRLF and CR in buf[start, end). */
  countLines(buf: Buffer, start: number, end: number): number {
    let lines = 0;
    for (let i = start; i < end; i++) {
      const byte = buf[i];
      if (byte === CR || (byte === LF && (i === start || buf[i - 1] !== CR))) lines++;
    }
    return lines;
  }

  /** Where the content of the record ends, or MORE, or BAD: refuse the first line. */
  #findStop(buf: Buffer, start: number, lineStop: number): number {
    const special = this.#special;
    const limit = this.#limit;
    let at = start;
    for (;;) {
      if (at < limit && buf[at] === QUOTE) {
        at = this.#closeQuote(buf, at + 1);
        if (at < 0) return at;
        if (at < limit && special[buf[at] as number] === 0) {
          this.#invalid = at < lineStop;
          return BAD;
        }
      } else {
        while (at < limit && special[buf[at] as number] === 0) at++;
        if (at < limit && buf[at] === QUOTE) return this.#endOfLine(buf, at);
      }
      if (at >= limit) return this.#runOut(at, false);
      if (buf[at] === LF || buf[at] === CR) return at;
      at++;
    }
  }

  /** `at` is inside a quoted cell. The position after its closing quote, or MORE or BAD. */
  #closeQuote(buf: Buffer, start: number): number {
    const limit = this.#limit;
    let at = start;
    for (;;) {
      while (at < limit && buf[at] !== QUOTE) at++;
      if (at >= limit) return this.#runOut(at, true);
      if (at + 1 >= limit || buf[at + 1] !== QUOTE) return at + 1;
      at += 2;
    }
  }

  /** A quote inside an unquoted cell: the record is refused to the end of this line, whatever it holds. */
  #endOfLine(buf: Buffer, start: number): number {
    let at = start;
    while (at < this.#limit && buf[at] !== LF && buf[at] !== CR) at++;
    const stop = at < this.#limit ? at : this.#runOut(at, false);
    this.#invalid = stop >= 0;
    return stop;
  }

  /** No byte is left before the limit. What is too long must be so because of a cell that spans lines. */
  #runOut(at: number, insideQuotes: boolean): number {
    if (this.#atMaximum) return BAD;
    if (!this.#final) return MORE;
    return insideQuotes ? BAD : at;
  }
}

/** Position after the terminator at `stop`, or -1 if its second byte may be still to come. */
function terminated(buf: Buffer, stop: number, end: number, final: boolean): number {
  if (stop === end || buf[stop] === LF) return Math.min(stop + 1, end);
  if (stop + 1 < end) return buf[stop + 1] === LF ? stop + 2 : stop + 1;
  return final ? end : MORE;
}
