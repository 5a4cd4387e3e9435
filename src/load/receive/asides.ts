import type { FileRef, FileStore } from '../../files/file-store.ts';
import type { WholeFile } from '../../formats/whole-file.ts';

/** Where a file is received into; what is kept aside for the time being goes there too. */
export type ReceivingStore = Pick<FileStore, 'create' | 'readRange' | 'remove'>;

/**
 * Files that say at their end what they hold (Parquet, ZIP), kept in the store while they are read: as received files that no
 * load has, so that the sweep finds them should the process be killed.
 */
export class Asides {
  readonly #store: ReceivingStore;
  readonly #refs: FileRef[] = [];

  constructor(store: ReceivingStore) {
    this.#store = store;
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
    this.#refs.push(ref);
    return { bytes, read: (start, end) => this.#store.readRange(ref, start, end) };
  }

  /** To be called once nobody reads them any more. */
  async removeAll(): Promise<void> {
    for (const ref of this.#refs.splice(0)) await this.#store.remove(ref);
  }
}
