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
   * set to `record_too_large` means that the record is already known to be longer than the limit: its bytes
   * need not be kept; go on with `skip`.
   *
   * While `start` moves forward in the same `buf` up to the same `end`, positions found are remembered. Call
   * `reset` if the bytes of a buffer were changed in between.
   */
  next(buf: Buffer, start: number, end: number, final: boolean): number;
  /**
   * Rest of a record that is too large: the end of its line (terminator included) in buf[start, end), or -1.
   * After a -1 the next call must begin with the last byte of this one, which may be the first half of CRLF.
   */
  skip(buf: Buffer, start: number, end: number, final: boolean): number;
  /** Forgets all remembered positions. */
  reset(): void;

  /** About the record returned last: it contains a '"' byte somewhere (CSV only). */
  readonly quoted: boolean;
  /** It is an empty line: not a record, not counted. */
  readonly blank: boolean;
  /** Line terminators consumed: 1 or more, except for a last line that has none. */
  readonly lines: number;
  /** End of the record without its terminator. */
  readonly contentEnd: number;
  readonly problem: ScanProblem | null;
}

/** The reject codes that a scanner can find. */
export type ScanProblem = 'invalid_quote' | 'unclosed_quote' | 'record_too_large';

export const LF = 10;
export const CR = 13;
