/*
 * Formats: bytes to records. Detection, decompression and encoding come first, then one scanner for each
 * format finds where records end. Everything here is linear in the bytes it reads, whatever they are.
 */
import { MAX_RECORD_BYTES } from '../base/limits.ts';

/**
 * Finds where records end. The receiver counts and cuts with it, the worker walks a chunk with it; both see
 * the same records, however the bytes are split into buffers or chunks.
 *
 * Synchronous and without allocation: positions only, nothing is copied or decoded.
 */
export interface RecordScanner {
  /**
   * End (exclusive, its terminator included) of the record that starts at `start`, within buf[start, end),
   * where start < end. Returns -1 if more bytes are needed (never when `final`, that is: when no byte follows
   * buf[end - 1] in the file or chunk): call again with the same start and a later end. A -1 with `problem`
   * set to `record_too_large` means that the record is already known to be longer than the limit: bytes before
   * `keepFrom` are not needed; go on with `skip`.
   *
   * While `start` moves forward in the same `buf` up to the same `end`, positions found are remembered. The bytes of a
   * buffer may not change in between.
   */
  next(buf: Buffer, start: number, end: number, final: boolean): number;
  /** Rest of a too large record: its end (with terminator) in buf[start, end), or -1; then the next call begins at `keepFrom` of this one. */
  skip(buf: Buffer, start: number, end: number, final: boolean): number;
  /**
   * After a record that is `open`: the first position in buf[start, end) behind a quote that closes its cell after all,
   * -1 if none has come yet (go on from `keepFrom`), -2 if there is none. Where it was closed, the record is too large,
   * and goes on: `skip` from that position. At `lowest`, before `start`, a record starts.
   */
  findClose(buf: Buffer, lowest: number, start: number, end: number, final: boolean): number;

  /** About the record returned last: it is an empty line, so no record, and not counted. */
  readonly blank: boolean;
  /** Line terminators consumed: 1 or more, except for a last line that has none. */
  readonly lines: number;
  /** End of the record without its terminator. */
  readonly contentEnd: number;
  readonly problem: ScanProblem | null;
  /** A quoted cell of it is not closed as far as was looked: what follows may belong to it. */
  readonly open: boolean;
  /** After a -1: where the next call has to begin. */
  readonly keepFrom: number;
}

export type ScanProblem = 'invalid_quote' | 'unclosed_quote' | 'record_too_large';

export const LF = 10;
export const CR = 13;

const SPACE = 32;
const TAB = 9;

/** Scanner for NDJSON. A record ends at LF or CRLF; a lone CR is white space in it. A line of white space only is blank. */
export function createLineScanner(maxRecordBytes = MAX_RECORD_BYTES): RecordScanner {
  return new Scanner(maxRecordBytes);
}

class Scanner implements RecordScanner {
  readonly open = false;
  blank = false;
  keepFrom = 0;
  lines = 0;
  contentEnd = 0;
  problem: ScanProblem | null = null;
  readonly #maxBytes: number;

  constructor(maxRecordBytes: number) {
    this.#maxBytes = maxRecordBytes;
  }

  next(buf: Buffer, start: number, end: number, final: boolean): number {
    const lineEnd = this.skip(buf, start, end, final);
    this.problem = this.contentEnd - start > this.#maxBytes ? 'record_too_large' : null;
    this.blank = lineEnd >= 0 && this.problem === null && isBlank(buf, start, this.contentEnd);
    return lineEnd;
  }

  /** Sets `contentEnd` also with a -1: to where the content reaches at least. */
  skip(buf: Buffer, start: number, end: number, final: boolean): number {
    const at = buf.indexOf(LF, start);
    const found = at >= 0 && at < end;
    const stop = found ? at : end;
    const beforeCr = stop > start && buf[stop - 1] === CR && (found || !final);
    this.contentEnd = beforeCr ? stop - 1 : stop;
    this.lines = found ? 1 : 0;
    // It may be the first half of CRLF.
    this.keepFrom = end - 1;
    if (found) return stop + 1;
    return final ? end : -1;
  }

  findClose(): number {
    return -2;
  }
}

function isBlank(buf: Buffer, start: number, end: number): boolean {
  for (let i = start; i < end; i++) {
    const byte = buf[i];
    if (byte !== SPACE && byte !== TAB && byte !== CR) return false;
  }
  return true;
}
