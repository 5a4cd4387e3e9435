import { MAX_REJECT_RAW_BYTES } from '../../base/limits.ts';
import { type RecordKind, recordKinds } from '../../domain/entity.ts';
import type { ChunkRange } from '../../domain/load.ts';
import { type Reason, type Reject, rejectCodes } from '../../domain/reject.ts';
import { doubled } from './key-table.ts';

/* In a rewritten file, the reason and the original bytes replace a record that is refused. */

export interface RefusedBefore extends Reason {
  /** Truncated to MAX_REJECT_RAW_BYTES. */
  readonly raw: Uint8Array;
}

export function refusedBefore({ code, message, column }: Reason, raw: Buffer): RefusedBefore {
  const isCut = raw.length > MAX_REJECT_RAW_BYTES;
  const cut = isCut ? ` (raw is cut at ${MAX_REJECT_RAW_BYTES} of ${raw.length} bytes)` : '';
  const cutBytes = Uint8Array.prototype.slice.call(raw, 0, MAX_REJECT_RAW_BYTES);
  return { code, message: message + cut, column, raw: cutBytes };
}

const NUL = 0;

/** A line of a rewritten CSV. It begins with U+0000, which no accepted record contains. */
export function writeRefusal(reason: Reason, raw: Buffer): string {
  const { code, ...refused } = refusedBefore(reason, raw);
  const [message, cutBytes] = [refused.message, refused.raw].map((each) =>
    Buffer.from(each).toString('base64'),
  );
  return `\0${code} ${message} ${cutBytes}`;
}

/** Reads a line that `writeRefusal` has written. Returns `null` for any other line. */
export function readRefusal(bytes: Buffer, start: number, end: number): RefusedBefore | null {
  if (bytes[start] !== NUL) return null;
  const [name, message, raw] = bytes.toString('latin1', start + 1, end).split(' ');
  const code = rejectCodes.find((each) => each === name);
  if (code === undefined || message === undefined || raw === undefined) return null;
  return {
    code,
    message: Buffer.from(message, 'base64').toString(),
    column: null,
    raw: Buffer.from(raw, 'base64'),
  };
}

const noBytes = new Uint8Array(0);

export class RecordPlaces {
  count = 0;
  starts = new Int32Array(16 * 1024);
  ends = new Int32Array(16 * 1024);
  lines = new Int32Array(16 * 1024);

  reset(): void {
    this.count = 0;
  }

  /** Adds a record, and returns its number in the chunk, counted from 0. */
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

  reject(record: number, reason: Reason | RefusedBefore, chunk: ChunkRange, bytes: Buffer): Reject {
    const { starts, ends, lines } = this;
    const start = starts[record] ?? 0;
    const end = ends[record] ?? start;
    const { code, message, column, raw } =
      'raw' in reason ? reason : refusedBefore(reason, bytes.subarray(start, end));
    return {
      code,
      message,
      column,
      row: chunk.firstRow + record,
      line: chunk.firstLine + (lines[record] ?? 0),
      byteOffset: chunk.byteStart + start,
      raw: reason.isSecret === true ? noBytes : raw,
    };
  }
}

/** The kinds that records specify for themselves. Uses no memory until a record states its kind. */
export class RecordKinds {
  #kinds = new Uint8Array(0);
  #some = false;

  get some(): boolean {
    return this.#some;
  }

  reset(): void {
    if (this.#some) this.#kinds.fill(0);
    this.#some = false;
  }

  set(record: number, kind: RecordKind): void {
    if (record >= this.#kinds.length) {
      const grown = new Uint8Array(Math.max(16 * 1024, 2 * record));
      grown.set(this.#kinds);
      this.#kinds = grown;
    }
    this.#some = true;
    this.#kinds[record] = recordKinds.indexOf(kind) + 1;
  }

  of(record: number): RecordKind | null {
    return recordKinds[(this.#kinds[record] ?? 0) - 1] ?? null;
  }
}
