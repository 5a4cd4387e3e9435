import { MAX_RECORD_BYTES } from '../domain/limits.ts';
import { CsvQuotes } from './csv-quotes.ts';
import { CR, LF, type RecordScanner, type ScanProblem } from './record-scanner.ts';

export type CsvScanner = RecordScanner;

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
