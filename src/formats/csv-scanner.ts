import { MAX_RECORD_BYTES } from '../base/limits.ts';
import { CellTable } from './csv-cell-table.ts';
import { type CsvDialect, type CsvMarks, isBlankByte, plainMarks } from './csv-dialect.ts';
import { CsvWalker, TOO_LARGE } from './csv-walker.ts';
import { CR, countLines, LF, MORE, type RecordScanner, type ScanProblem } from './record-scanner.ts';

/**
 * Scans CSV as in RFC 4180, or with other marks. LF, CRLF and CR may be mixed. A line without quote
 * or escape costs three comparisons and one `indexOf`, because the next LF, CR and quote are
 * remembered. Other records are read byte by byte, as are all records if `cells` is set. All
 * readers of a CSV must use the same `marksOf`. Reasons: docs/decisions/formats.md.
 *
 * The scanner refuses:
 * - `record_too_large`: longer than `maxRecordBytes`. All of it is skipped.
 * - `invalid_quote`: a quote in an unquoted cell, or text after a closing quote. The record ends at
 *   a line end that is certainly outside quotes, or after `maxRecordBytes`.
 * - `unclosed_quote`: a cell that is still open after `maxRecordBytes`. The record ends with the
 *   line where the cell begins, so a stray quote costs only one line.
 */
export function createCsvScanner(
  marks: CsvMarks,
  maxRecordBytes = MAX_RECORD_BYTES,
  cells: CellTable | null = null,
): RecordScanner {
  return new Scanner(marks, maxRecordBytes, cells);
}

/** A malformed record is `null`. */
export function* plainRecords(
  header: Pick<CsvDialect, 'delimiter'>,
  bytes: Buffer,
  isEnded = true,
): Generator<readonly string[] | null> {
  const cells = new CellTable();
  const marks = plainMarks(header);
  const scanner = createCsvScanner(marks, MAX_RECORD_BYTES, cells);
  let at = 0;
  while (at < bytes.length) {
    at = scanner.next(bytes, at, bytes.length, isEnded);
    if (at < 0) return;
    if (!scanner.blank) yield scanner.problem === null ? cells.texts(bytes, marks) : null;
  }
}

const noBuffer = Buffer.alloc(0);

class Scanner implements RecordScanner {
  blank = false;
  isUnclosed = false;
  lines = 0;
  contentEnd = 0;
  keepFrom = 0;
  problem: ScanProblem | null = null;

  readonly #marks: CsvMarks;
  readonly #maxBytes: number;
  readonly #walker: CsvWalker;
  readonly #walkAll: boolean;
  /** The byte that escapes other bytes, or -1 if quotes are escaped by doubling them. */
  readonly #escapeByte: number;
  /** Table of all bytes: 1 for each byte that may begin a blank record. */
  readonly #beginsBlank = new Uint8Array(256);
  /**
   * Buffer to which the remembered positions refer. If the position of a byte equals #end, the byte
   * does not occur.
   */
  #buf: Buffer = noBuffer;
  #end = 0;
  #from = 0;
  #lf = -1;
  #cr = -1;
  #quote = -1;
  #escape = -1;

  constructor(marks: CsvMarks, maxRecordBytes: number, cells: CellTable | null) {
    this.#marks = marks;
    this.#maxBytes = maxRecordBytes;
    this.#walker = new CsvWalker(marks, maxRecordBytes, cells);
    this.#walkAll = cells !== null;
    this.#escapeByte = marks.escape === marks.quote ? -1 : marks.escape;
    for (let byte = 0; byte < 256; byte++) {
      const isMark = byte === marks.quote || byte === marks.delimiter[0] || byte === marks.comment[0];
      if (isMark || isBlankByte(byte)) this.#beginsBlank[byte] = 1;
    }
  }

  next(buf: Buffer, start: number, end: number, final: boolean): number {
    const lineEnd = this.#nextLine(buf, start, end, final);
    const lineStop = this.contentEnd;
    this.problem = null;
    this.isUnclosed = false;
    const isTooLarge = lineStop - start > this.#maxBytes;
    if (lineEnd < 0 && !isTooLarge) return -1;
    if (this.#quote < start) this.#quote = find(buf, this.#marks.quote, start, end);
    if (this.#escape < start) this.#escape = find(buf, this.#escapeByte, start, end);
    this.blank = lineStop === start;
    const isMarked = this.#quote < lineStop || this.#escape < lineStop;
    if (isTooLarge) return this.#startRest(buf, start, end, final, isMarked ? -1 : lineEnd);
    if (this.#beginsBlank[buf[start] as number] === 1 && this.#isComment(buf, start, lineStop)) {
      this.blank = true;
      return lineEnd;
    }
    let recordEnd = lineEnd;
    if (isMarked || (this.#walkAll && !this.blank)) {
      recordEnd = this.#walk(buf, start, end, lineEnd, final);
      if (recordEnd < 0 || this.problem !== null) return recordEnd;
    }
    if (this.#beginsBlank[buf[start] as number] === 1)
      this.blank = isBlankRecord(this.#marks, buf, start, this.contentEnd);
    return recordEnd;
  }

  skip(buf: Buffer, start: number, end: number, final: boolean): number {
    const walker = this.#walker;
    const recordEnd = walker.skip(buf, start, end, final);
    this.problem = 'record_too_large';
    this.blank = false;
    this.isUnclosed = walker.isUnclosed;
    this.lines = walker.lines;
    this.contentEnd = walker.contentEnd;
    this.keepFrom = walker.keepFrom;
    return recordEnd;
  }

  findClose(buf: Buffer, lowest: number, start: number, end: number, final: boolean): number {
    const at = this.#walker.findClose(buf, lowest, start, end, final);
    this.keepFrom = this.#walker.keepFrom;
    return at;
  }

  /**
   * Returns the end of the line with its terminator, or -1 if the line does not end in the bytes.
   * Always sets `contentEnd`.
   */
  #nextLine(buf: Buffer, start: number, end: number, final: boolean): number {
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

  #isComment(buf: Buffer, start: number, lineStop: number): boolean {
    const { comment, isBlanks } = this.#marks;
    if (comment.length === 0) return false;
    let at = start;
    if (isBlanks) while (at < lineStop && isBlankByte(buf[at])) at++;
    return hasMark(comment, buf, at, lineStop);
  }

  #walk(buf: Buffer, start: number, end: number, lineEnd: number, final: boolean): number {
    const walker = this.#walker;
    const recordEnd = walker.walk(buf, start, end, final);
    if (recordEnd === TOO_LARGE) return this.#startRest(buf, start, end, final, -1, true);
    if (recordEnd === MORE) return -1;
    this.contentEnd = walker.contentEnd;
    this.problem = walker.problem;
    this.isUnclosed = walker.isUnclosed;
    if (recordEnd !== lineEnd) this.lines = countLines(buf, start, recordEnd);
    return final && this.isUnclosed ? this.#closeLater(buf, start, recordEnd, end) : recordEnd;
  }

  /**
   * `lineEnd` is the end of the first line, or -1 if it is unknown or the record may have more
   * lines.
   */
  #startRest(
    buf: Buffer,
    start: number,
    end: number,
    final: boolean,
    lineEnd: number,
    wasWalked = false,
  ): number {
    this.problem = 'record_too_large';
    this.blank = false;
    if (lineEnd >= 0) return lineEnd;
    this.#walker.begin(buf, start, wasWalked);
    const recordEnd = this.skip(buf, start, end, final);
    return final ? this.#closeLater(buf, start, recordEnd, end) : recordEnd;
  }

  /**
   * Returns the end of a complete record. If a later quote closes the open cell, the record
   * continues after this quote. Otherwise, the record ends at `from`.
   */
  #closeLater(buf: Buffer, start: number, from: number, end: number): number {
    let recordEnd = from;
    while (this.isUnclosed) {
      const close = this.findClose(buf, recordEnd, recordEnd, end, true);
      if (close < 0) break;
      recordEnd = this.skip(buf, close, end, true);
    }
    if (recordEnd !== from) this.lines = countLines(buf, start, recordEnd);
    return recordEnd;
  }

  #forget(buf: Buffer, end: number): void {
    this.#buf = buf;
    this.#end = end;
    this.#lf = -1;
    this.#cr = -1;
    this.#quote = -1;
    this.#escape = -1;
  }
}

function find(buf: Buffer, byte: number, start: number, end: number): number {
  if (byte < 0) return end;
  const at = buf.indexOf(byte, start);
  return at < 0 || at > end ? end : at;
}

function hasMark(mark: Buffer, buf: Buffer, at: number, end: number): boolean {
  return at + mark.length <= end && mark.compare(buf, at, at + mark.length) === 0;
}

/** True if every cell of a well-formed record is blank, quoted or not. */
function isBlankRecord({ quote, delimiter }: CsvMarks, buf: Buffer, start: number, end: number): boolean {
  let inside = false;
  let at = start;
  while (at < end) {
    const byte = buf[at];
    if (!inside && hasMark(delimiter, buf, at, end)) at += delimiter.length;
    else if (isBlankByte(byte)) at++;
    else if (byte !== quote || (inside && buf[at + 1] === quote && at + 1 < end)) return false;
    else {
      inside = !inside;
      at++;
    }
  }
  return true;
}
