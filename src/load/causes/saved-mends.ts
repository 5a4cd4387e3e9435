import { MAX_MENDS_OF_RECORD, MAX_REJECT_RAW_BYTES } from '../../domain/limits.ts';
import type { ChunkRange } from '../../domain/load.ts';
import type { Reject } from '../../domain/reject.ts';
import type { RecordsAsWritten, Rows } from '../../mapping/rows.ts';
import type { LoadSource } from '../../postgres/stores/running-loads.ts';
import { yielding } from '../../yielding.ts';
import { readMendId } from './mend-ids.ts';
import { MendsCsv, MendsNdjson } from './mended-text.ts';
import { type RefusedSource, RejectCauses } from './reject-causes.ts';

/**
 * SavedMends applies the mends that a load was given (`mend`) while its chunks are read: a record that would be refused is mapped as they
 * leave it, in its place. One that would be refused nevertheless stays as it is, with its own reason.
 */
export class SavedMends {
  readonly #mends: readonly ReturnType<typeof readMendId>[];
  readonly #causes: RejectCauses;
  readonly #shape: MendsCsv | MendsNdjson;

  constructor(source: Pick<LoadSource, 'mends' | keyof RefusedSource>) {
    this.#mends = source.mends.map(readMendId);
    this.#causes = new RejectCauses(source);
    this.#shape = source.header === null ? new MendsNdjson(source) : new MendsCsv(source.header, source);
  }

  /** Mends what was refused of a chunk that is mapped. Returns the bytes that were mapped last; `map` maps others. */
  async apply(
    rows: Rows,
    chunk: ChunkRange,
    bytes: Buffer,
    map: (bytes: Buffer) => Promise<void>,
  ): Promise<Buffer> {
    const { records } = rows;
    const mended = new Map<number, Buffer>();
    const mapMended = async (): Promise<Buffer> => {
      records.written ??= { ...records.positions(), bytes, mended };
      const spliced = splice(records.written);
      await map(spliced);
      return spliced;
    };
    let last = bytes;
    for (let round = 0; round < MAX_MENDS_OF_RECORD; round++) {
      let isChanged = false;
      for await (const reject of yielding(rows.rejects)) {
        const record = reject.row - chunk.firstRow;
        const text = this.#mend({ ...reject, raw: mended.get(record) ?? reject.raw });
        if (text === null) continue;
        mended.set(record, text);
        isChanged = true;
      }
      if (!isChanged) break;
      last = await mapMended();
    }
    const refused = rows.rejects.filter(({ row }) => mended.delete(row - chunk.firstRow));
    return refused.length === 0 ? last : mapMended();
  }

  #mend(reject: Reject): Buffer | null {
    if (reject.raw.length === 0 || reject.raw.length >= MAX_REJECT_RAW_BYTES) return null;
    const own = this.#causes.of(reject).cause;
    for (const { cause, mend } of this.#mends) {
      const text = cause === null || cause === own ? this.#shape.rewrite(mend, reject) : null;
      if (text !== null) return text;
    }
    return null;
  }
}

/** Returns the bytes of a chunk with the mended records in place of the written ones. */
function splice({ bytes, starts, ends, mended }: RecordsAsWritten): Buffer {
  const pieces: Buffer[] = [];
  let at = 0;
  for (const [record, text] of [...mended].sort(([a], [b]) => a - b)) {
    pieces.push(bytes.subarray(at, starts[record]), text);
    at = ends[record] ?? at;
  }
  return Buffer.concat([...pieces, bytes.subarray(at)]);
}
