/*
 * Formats turn bytes into records. Detection, decompression and encoding come first, then the
 * format's scanner finds where records end. Everything here takes time linear in its input.
 */
import { MAX_RECORD_BYTES } from '../base/limits.ts';

/**
 * Finds where records end. The receiver cuts with it, and the worker walks a chunk with it. Both
 * find the same records for any split into buffers or chunks. It returns positions and copies
 * nothing.
 */
export interface RecordScanner {
  /**
   * Returns the end, with its terminator, of the record at `start` in buf[start, end), or -1 if it
   * needs more bytes (never when `final`: no byte follows buf[end - 1] in the file or chunk). Call
   * it again with the same start and a later end. If it returns -1 with `problem`
   * `record_too_large`, bytes before `keepFrom` are not needed: continue with `skip`. Positions are
   * remembered while `start` advances in the same `buf` to the same `end`, so the bytes must not
   * change.
   */
  next(buf: Buffer, start: number, end: number, final: boolean): number;
  /** Returns the end of a record that is too large, or -1. The next call starts at `keepFrom`. */
  skip(buf: Buffer, start: number, end: number, final: boolean): number;
  /**
   * After an `open` record, returns the first position after a quote that closes its cell. Returns
   * -1 if there is none yet (continue from `keepFrom`), or -2 if there is none. The closed record
   * is too large and continues: `skip` from there. `lowest`, before `start`, is the start of a
   * record.
   */
  findClose(buf: Buffer, lowest: number, start: number, end: number, final: boolean): number;

  /** True if the last record is an empty line, which is not counted. */
  readonly blank: boolean;
  /** Number of line terminators consumed. 0 only for a last line without one. */
  readonly lines: number;
  /** End of the record without its terminator. */
  readonly contentEnd: number;
  readonly problem: ScanProblem | null;
  /** True if a quoted cell is not closed so far and may continue in the following bytes. */
  readonly open: boolean;
  /** Start of the next call after a result of -1. */
  readonly keepFrom: number;
}

export type ScanProblem = 'invalid_quote' | 'unclosed_quote' | 'record_too_large';

export const LF = 10;
export const CR = 13;

const SPACE = 32;
const TAB = 9;

/** Scans NDJSON, whose records end at LF or CRLF. A lone CR is white space. */
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

  /** Also sets `contentEnd` with a result of -1, to the least possible end. */
  skip(buf: Buffer, start: number, end: number, final: boolean): number {
    const at = buf.indexOf(LF, start);
    const hasEnd = at >= 0 && at < end;
    const stop = hasEnd ? at : end;
    const beforeCr = stop > start && buf[stop - 1] === CR && (hasEnd || !final);
    this.contentEnd = beforeCr ? stop - 1 : stop;
    this.lines = hasEnd ? 1 : 0;
    // The last byte may be the first half of a CRLF.
    this.keepFrom = end - 1;
    if (hasEnd) return stop + 1;
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
