/*
 * Formats turn bytes into records: detection, decompression and decoding, then a scanner that finds
 * where records end. Every function here takes time proportional to its input.
 */
import { MAX_RECORD_BYTES } from '../base/limits.ts';

/**
 * Finds where records end. The receiver uses the scanner to cut a file into chunks, and the worker
 * uses it to walk through a chunk. The receiver and the worker find the same records, however the
 * bytes are split. The scanner returns positions and copies nothing.
 */
export interface RecordScanner {
  /**
   * Returns the end of the record with its terminator, or -1 if buf[start, end) is too short. After
   * -1 with `problem` `record_too_large`, continue with `skip`. Bytes before `keepFrom` are then no
   * longer needed. After any other -1, call again with the same start and a later end. If `final`,
   * buf[end - 1] is the last byte, and the result is never -1.
   *
   * With the same `buf` and `end` as before, found positions are reused, so the bytes must not
   * change.
   */
  next(buf: Buffer, start: number, end: number, final: boolean): number;
  /**
   * Returns the end of a record that is too large, or -1 if more bytes are needed (from
   * `keepFrom`).
   */
  skip(buf: Buffer, start: number, end: number, final: boolean): number;
  /**
   * After a record with `isUnclosed`, searches for a quote that closes its cell. Returns the
   * position after this quote, -1 if more bytes are needed (from `keepFrom`), or -2 if there is
   * none. The record continues after the quote and is too large, so call `skip` from there.
   * `lowest` is the start of a record at or before `start`.
   */
  findClose(buf: Buffer, lowest: number, start: number, end: number, final: boolean): number;

  /** True for an empty line, which is not a record. */
  readonly blank: boolean;
  /** Number of line terminators in the record. 0 only if the file ends without a terminator. */
  readonly lines: number;
  /** End of the record without its terminator. */
  readonly contentEnd: number;
  readonly problem: ScanProblem | null;
  /** True if a quoted cell may continue in the next bytes. */
  readonly isUnclosed: boolean;
  /** Start of the bytes that `skip` or `findClose` still needs after -1. */
  readonly keepFrom: number;
}

export type ScanProblem = 'invalid_quote' | 'unclosed_quote' | 'record_too_large';

/** Result of a scan that needs more bytes. */
export const MORE = -1;

export const LF = 10;
export const CR = 13;

const SPACE = 32;
const TAB = 9;

/** Returns a scanner for NDJSON, whose records end at LF or CRLF. A lone CR is white space. */
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

  /** After -1, `contentEnd` is the earliest possible end of the record. */
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

/** Returns the position after the terminator, or MORE if its LF may be in the next bytes. */
export function terminated(buf: Buffer, stop: number, end: number, final: boolean): number {
  if (stop === end || buf[stop] === LF) return Math.min(stop + 1, end);
  if (stop + 1 < end) return buf[stop + 1] === LF ? stop + 2 : stop + 1;
  return final ? end : MORE;
}

/** Counts LF, CRLF and CR. `start` must not be inside a CRLF. */
export function countLines(buf: Buffer, start: number, end: number): number {
  let lines = 0;
  for (let i = start; i < end; i++) {
    const byte = buf[i];
    if (byte === CR || (byte === LF && (i === start || buf[i - 1] !== CR))) lines++;
  }
  return lines;
}
