import { MAX_RECORD_BYTES } from '../domain/limits.ts';
import { CR, LF, type RecordScanner, type ScanProblem } from './record-scanner.ts';

type CsvScanner = RecordScanner;

/**
 * Scanner for CSV as RFC 4180 has it, with LF, CRLF and CR as terminators, mixed freely.
 *
 * A line without a quote costs two comparisons and one `indexOf`: the next LF, CR and quote are remembered.
 * Only a record with a quote is walked byte by byte.
 *
 * What is refused, and how much of the file goes with it:
 * - `record_too_large`: the line is longer than `maxRecordBytes`. Goes to the end of the line.
 * - `invalid_quote`: a quote inside an unquoted cell, or something other than a delimiter after a closing
 *   quote. Goes to the end of the line on which it stands; after a closing quote, that is the first line.
 * - `unclosed_quote`: a quoted cell that runs past its first line and is not properly closed within
 *   `maxRecordBytes`. Only the first line is refused and scanning goes on with the next, so that a stray
 *   opening quote costs one line and swallows nothing.
 */
export function createCsvScanner(delimiterByte: number, maxRecordBytes = MAX_RECORD_BYTES): CsvScanner {
  return new Scanner(delimiterByte, maxRecordBytes);
}

const QUOTE = 34;
const noBuffer = Buffer.alloc(0);

class Scanner implements RecordScanner {
  quoted = false;
  blank = false;
  lines = 0;
  contentEnd = 0;
  problem: ScanProblem | null = null;

  readonly #maxBytes: number;
  readonly #quotes: CsvQuotes;
  /** What the remembered positions belong to; a position equal to #end means "none before the end". */
  #buf: Buffer = noBuffer;
  #end = 0;
  #from = 0;
  #lf = -1;
  #cr = -1;
  #quote = -1;

  constructor(delimiterByte: number, maxRecordBytes: number) {
    this.#maxBytes = maxRecordBytes;
    this.#quotes = new CsvQuotes(delimiterByte, maxRecordBytes);
  }

  reset(): void {
    this.#buf = noBuffer;
  }

  next(buf: Buffer, start: number, end: number, final: boolean): number {
    const lineEnd = this.skip(buf, start, end, final);
    const tooLarge = this.contentEnd - start > this.#maxBytes;
    this.problem = tooLarge ? 'record_too_large' : null;
    if (lineEnd < 0) return -1;
    if (this.#quote < start) this.#quote = find(buf, QUOTE, start, end);
    this.quoted = this.#quote < this.contentEnd;
    this.blank = this.contentEnd === start;
    return this.quoted && !tooLarge ? this.#walk(buf, start, end, lineEnd, final) : lineEnd;
  }

  /** Sets `contentEnd` also with a -1: to where the content reaches at least. */
  skip(buf: Buffer, start: number, end: number, final: boolean): number {
    if (buf !== this.#buf || end !== this.#end || start < this.#from) this.#forget(buf, end);
    this.#from = start;
    if (this.#lf < start) this.#lf = find(buf, LF, start, end);
    if (this.#cr < start) this.#cr = find(buf, CR, start, end);
    const stop = Math.min(this.#lf, this.#cr);
    this.contentEnd = stop;
    this.lines = stop === end ? 0 : 1;
    if (stop === end) return final ? end : -1;
    if (stop === this.#lf) return stop + 1;
    if (stop + 1 < end) return buf[stop + 1] === LF ? stop + 2 : stop + 1;
    return final ? end : -1;
  }

  #walk(buf: Buffer, start: number, end: number, lineEnd: number, final: boolean): number {
    const quotes = this.#quotes;
    const recordEnd = quotes.walk(buf, start, end, this.contentEnd, lineEnd, final);
    if (recordEnd < 0) return -1;
    this.contentEnd = quotes.contentEnd;
    this.problem = quotes.problem;
    if (recordEnd !== lineEnd) this.lines = quotes.countLines(buf, start, recordEnd);
    return recordEnd;
  }

  #forget(buf: Buffer, end: number): void {
    this.#buf = buf;
    this.#end = end;
    this.#lf = -1;
    this.#cr = -1;
    this.#quote = -1;
  }
}

/** First position of `byte` in buf[start, end), or `end`. */
function find(buf: Buffer, byte: number, start: number, end: number): number {
  const at = buf.indexOf(byte, start);
  return at < 0 || at > end ? end : at;
}

/** Found by the inner loops instead of a position. */
const MORE = -1;
const BAD = -2;

/**
 * Walks a CSV record that contains a quote, cell by cell. Its first line is known to end at `lineEnd` and to be
 * no longer than the limit. The result is the same whatever bytes follow the record, so that a chunk that
 * ends with this record, and the whole file, give the same answer.
 */
class CsvQuotes {
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
