import { type RecordKind, recordKinds } from '../../domain/entity.ts';
import type { ChunkRange } from '../../domain/load.ts';
import type { Reason, Reject } from '../../domain/reject.ts';
import { doubled } from './key-table.ts';
import { type RefusedBefore, refusedBefore } from './refused-before.ts';

const noBytes = new Uint8Array(0);

export class RecordPlaces {
  count = 0;
  starts = new Int32Array(16 * 1024);
  ends = new Int32Array(16 * 1024);
  lines = new Int32Array(16 * 1024);

  reset(): void {
    this.count = 0;
  }

  /** Returns the number of the record in the chunk, counted from 0. */
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

/** Kinds that records state. Uses no memory until a record states its kind. */
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
