import { MAX_REJECT_RAW_BYTES } from '../../domain/limits.ts';
import type { Reject } from '../../domain/reject.ts';
import type { FileRef } from '../../files/file-store.ts';
import { hiddenValues } from '../../personal/values.ts';
import type { LoadSource } from '../../postgres/stores/running-loads.ts';
import { type ChunkReader, createChunkReader } from '../read-chunk.ts';
import { type Change, MendsCsv, MendsNdjson } from './mended-text.ts';
import type { Mend } from './mends.ts';

export interface MendedRecord extends Change {
  readonly reject: Reject;
}

/** Mends refused records of one load, and asks the loader whether it would take them. */
export class Mending {
  readonly head: Buffer;
  readonly #shape: MendsCsv | MendsNdjson;
  readonly #reader: ChunkReader;
  #bytes: Buffer = Buffer.alloc(0);

  constructor(source: LoadSource) {
    const { header } = source;
    this.#shape = header === null ? new MendsNdjson(source) : new MendsCsv(header, source);
    this.head = this.#shape.head;
    const files = { readRange: async (): Promise<Buffer> => this.#bytes };
    this.#reader = createChunkReader(
      { ...source, ...this.#shape.reading, mends: [], fileRef: 'mended' as FileRef },
      files,
      hiddenValues,
    );
  }

  /** The records that the mend is about, as it leaves them, if a load would take them. */
  async mend(mend: Mend, rejects: readonly Reject[]): Promise<MendedRecord[]> {
    const mended = rejects.flatMap((reject): MendedRecord[] => {
      if (reject.raw.length >= MAX_REJECT_RAW_BYTES) return [];
      const change = this.#shape.apply(mend, reject);
      return change === null ? [] : [{ reject, ...change }];
    });
    const refused = await this.#refused(mended.map(({ line }) => line));
    return mended.filter((_, at) => !refused.has(at));
  }

  /** Which of these records a load would refuse. */
  async #refused(lines: readonly Buffer[]): Promise<ReadonlySet<number>> {
    if (lines.length === 0) return new Set();
    this.#bytes = Buffer.concat(lines);
    const rows = await this.#reader.read({
      byteStart: 0,
      byteEnd: this.#bytes.length,
      firstRow: 0,
      firstLine: 1,
      rowCount: lines.length,
      oversized: false,
    });
    return new Set(rows.rejects.map(({ row }) => row));
  }
}
