import type { ChunkRange } from '../domain/chunk.ts';
import { MAX_REJECT_RAW_BYTES } from '../domain/limits.ts';
import type { Reason, Reject } from '../domain/reject.ts';
import { doubled } from './key-table.ts';

/** Where each record of a chunk stands, so that any of them can be named later without an object per record. */
export class RecordIndex {
  count = 0;
  starts = new Int32Array(16 * 1024);
  ends = new Int32Array(16 * 1024);
  /** Line of the record, from 0 within the chunk. */
  lines = new Int32Array(16 * 1024);

  reset(): void {
    this.count = 0;
  }

  /** Returns the number of the record within its chunk, from 0. */
  add(start: number, end: number, line: number): number {
    const record = this.count++;
    if (record === this.starts.length) {
      this.starts = doubled(this.starts);
      this.ends = doubled(this.ends);
      this.lines = doubled(this.lines);
    }
    this.starts[record] = start;
    this.ends[record] = end;
    this.lines[record] = line;
    return record;
  }

  /** Names record `record` of `chunk`, whose bytes are `bytes`, as refused for `reason`. */
  reject(record: number, reason: Reason, chunk: ChunkRange, bytes: Buffer): Reject {
    const start = this.starts[record] ?? 0;
    const end = this.ends[record] ?? start;
    const cut = end - start > MAX_REJECT_RAW_BYTES;
    return {
      code: reason.code,
      message: cut
        ? `${reason.message} (raw is cut at ${MAX_REJECT_RAW_BYTES} of ${end - start} bytes)`
        : reason.message,
      column: reason.column,
      row: chunk.firstRow + record,
      line: chunk.firstLine + (this.lines[record] ?? 0),
      byteOffset: chunk.byteStart + start,
      raw: Uint8Array.prototype.slice.call(bytes, start, cut ? start + MAX_REJECT_RAW_BYTES : end),
    };
  }
}
