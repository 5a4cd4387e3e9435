import { FILE_TOUCH_MS } from '../../domain/limits.ts';
import type { FileRef, FileStore } from '../../files/file-store.ts';
import type { Sniffed } from '../../formats/csv-sniff.ts';
import type { WholeFile } from '../../formats/whole-file.ts';
import { type KeepAlive, keepAlive } from '../../poller.ts';
import type { Convert } from './convert.ts';
import type { CsvBeginning } from './csv-opening.ts';

/** Where a file is received into; what is kept aside for the time being goes there too. */
export interface ReceivingStore extends Pick<FileStore, 'create' | 'readRange' | 'remove'> {
  /** Says that the file is in use; false if it is gone. Missing where nothing is swept. */
  readonly touch?: (ref: FileRef) => Promise<boolean>;
  /** Converts files elsewhere; without it, they are converted in this process. */
  readonly convert?: Convert;
  /** Detects the dialect of a CSV elsewhere; without it, this process does. */
  readonly sniff?: (sample: CsvBeginning, signal: AbortSignal) => Promise<Sniffed>;
}

/**
 * Files that are read once they are whole (Parquet, Avro, ZIP), kept in the store meanwhile: as received files that no
 * load has, so that the sweep finds them should the process be killed. They are touched until then, however long that takes.
 */
export class Asides {
  readonly #store: ReceivingStore;
  readonly #touchMs: number;
  readonly #kept: { readonly ref: FileRef; readonly touching: KeepAlive | undefined }[] = [];

  constructor(store: ReceivingStore, touchMs = FILE_TOUCH_MS) {
    this.#store = store;
    this.#touchMs = touchMs;
  }

  /** Throws what the source and the store throw, and leaves nothing then. */
  async keep(source: AsyncIterable<Buffer>): Promise<WholeFile> {
    const writer = await this.#store.create();
    let bytes = 0;
    try {
      for await (const piece of source) {
        await writer.write(piece);
        bytes += piece.length;
      }
      await writer.commit();
    } catch (error) {
      await writer.discard();
      throw error;
    }
    const { ref } = writer;
    const { touch } = this.#store;
    this.#kept.push({ ref, touching: touch && keepAlive(this.#touchMs, () => touch(ref)) });
    return { bytes, read: (start, end) => this.#store.readRange(ref, start, end) };
  }

  /** To be called once nobody reads them any more. */
  async removeAll(): Promise<void> {
    for (const { ref, touching } of this.#kept.splice(0)) {
      touching?.stop();
      await this.#store.remove(ref);
    }
  }
}
