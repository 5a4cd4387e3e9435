import type { Logger } from 'pino';
import type { Compression, ExportFile } from '../../domain/export.ts';
import type { FileRef, FileStore } from '../../files/file-store.ts';
import { type StoredFile, StoredFileWriter } from './stored-file.ts';

/** The files of one attempt at an export: all of them, or none. */
export class AttemptFiles {
  readonly #store: FileStore;
  readonly #open = new Set<StoredFileWriter>();
  readonly #files: ExportFile[] = [];

  constructor(store: FileStore) {
    this.#store = store;
  }

  /** Those that are complete, in the order in which they were finished. */
  get files(): readonly ExportFile[] {
    return this.#files;
  }

  async create(compression: Compression): Promise<StoredFileWriter> {
    const writer = new StoredFileWriter(await this.#store.create(), compression);
    this.#open.add(writer);
    return writer;
  }

  async finish(
    writer: StoredFileWriter,
    about: Pick<ExportFile, 'filename' | 'dataset' | 'rows'>,
  ): Promise<StoredFile> {
    const stored = await writer.finish();
    this.#open.delete(writer);
    this.#files.push({ ...about, ...stored });
    return stored;
  }

  /** Leaves nothing behind. What cannot be removed is logged: nobody will ask for it again. */
  async discard(log: Logger): Promise<void> {
    const refs = this.#files.map(({ ref }) => ref as FileRef);
    const removals = [
      ...[...this.#open].map((writer) => writer.discard()),
      ...refs.map((ref) => this.#store.remove(ref)),
    ];
    for (const result of await Promise.allSettled(removals)) {
      if (result.status === 'rejected')
        log.warn({ err: result.reason }, 'a file of a failed export is left over');
    }
  }
}
