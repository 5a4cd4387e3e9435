/*
 * Formats turn bytes into records. Detection, decompression and decoding come first. Then the
 * scanner of the format finds where records end. The time of every function here is proportional to
 * the length of its input.
 */
import { MAX_RECORD_BYTES } from '../base/limits.ts';

/**
 * Finds where records end. The receiver uses a scanner to cut a file into chunks, and the worker
 * uses one to walk a chunk. Both find the same records, however the bytes are split into buffers or
 * chunks. A scanner returns positions and does not copy bytes.
 */
export interface RecordScanner {
  /**
   * Returns the end of the record at `start`, including its terminator. Returns -1 if more bytes
   * than buf[start, end) are needed. The next call must then have the same start and a later end.
   * If `final`, buf[end - 1] is the last byte of the file or chunk, and the result is never -1.
   * If the result is -1 and `problem` is `record_too_large`, continue with `skip`. Bytes before
   * `keepFrom` are then no longer needed.
   *
   * As long as `buf` and `end` are the same as in the previous call, the scanner reuses positions
   * that it has already found. Therefore, the caller must not change the bytes.
   */
  next(buf: Buffer, start: number, end: number, final: boolean): number;
  /**
   * Returns the end of a record that is too large, or -1 if more bytes are needed. The next call
   * starts at `keepFrom`.
   */
  skip(buf: Buffer, start: number, end: number, final: boolean): number;
  /**
   * After a record with `open`, searches for a quote that closes the open cell. Returns the
   * position after the quote, -1 if more bytes are needed (continue from `keepFrom`), or -2 if no
   * quote closes the cell. If there is a quote, the record continues after it and is too large.
   * Call `skip` from there. `lowest` is the start of a record at or before `start`.
   */
  findClose(buf: Buffer, lowest: number, start: number, end: number, final: boolean): number;

  /** True if the last record is an empty line. Empty lines do not count as records. */
  readonly blank: boolean;
  /** Number of line terminators in the record. 0 only if the file ends without one. */
  readonly lines: number;
  /** End of the record without its terminator. */
  readonly contentEnd: number;
  readonly problem: ScanProblem | null;
  /** True if a quoted cell is still open and may continue in the following bytes. */
  readonly isUnclosed: boolean;
  /** Where the next call must start if the last call returned -1. */
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
  readonly isUnclosed = false;
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

  /** If `skip` returns -1, `contentEnd` is the earliest position at which the record may end. */
  skip(buf: Buffer, start: number, end: number, final: boolean): number {
    const at = buf.indexOf(LF, start);
    const hasEnd = at >= 0 && at < end;
    const stop = hasEnd ? at : end;
    const beforeCr = stop > start && buf[stop - 1] === CR && (hasEnd || !final);
    this.contentEnd = beforeCr ? stop - 1 : stop;
    this.lines = hasEnd ? 1 : 0;
    // The last byte may be a CR whose LF is in the next bytes.
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
