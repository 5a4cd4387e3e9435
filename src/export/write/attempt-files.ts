import { createHash } from 'node:crypto';
import type { Logger } from 'pino';
import type { Compression, ExportFile } from '../../domain/export.ts';
import { GZIP_BLOCK_BYTES } from '../../domain/limits.ts';
import type { FileRef, FileStore, FileWriter } from '../../files/file-store.ts';
import { GzipBlocks } from './gzip.ts';

/** The files of one attempt at an export: all of them, or none. */
export class AttemptFiles {
  readonly #store: FileStore;
  readonly #open = new Set<StoredFileWriter>();
  readonly #files: ExportFile[] = [];

  constructor(store: FileStore) {
    this.#store = store;
  }

  /** The complete files, in the order of their completion. */
  get files(): readonly ExportFile[] {
    return this.#files;
  }

  /** A file that is packed is begun anew from `splitBytes` on: what is packed at a time is no more than that. */
  async create(compression: Compression, splitBytes = GZIP_BLOCK_BYTES): Promise<StoredFileWriter> {
    const writer = new StoredFileWriter(await this.#store.create(), compression, splitBytes);
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

/** A file as it is stored. */
interface StoredFile {
  readonly ref: FileRef;
  readonly bytes: number;
  /** Hex. */
  readonly sha256: string;
}

/** Writes one file: packs it if asked to, and counts and hashes what is stored. */
export class StoredFileWriter {
  /** So far; what is being packed is not among them. */
  bytes = 0;
  readonly #writer: FileWriter;
  readonly #hash = createHash('sha256');
  readonly #gzip: GzipBlocks | null;

  constructor(writer: FileWriter, compression: Compression, splitBytes = GZIP_BLOCK_BYTES) {
    this.#writer = writer;
    const blockBytes = Math.min(GZIP_BLOCK_BYTES, splitBytes);
    this.#gzip = compression === 'none' ? null : new GzipBlocks(blockBytes, (bytes) => this.#store(bytes));
  }

  /** Resolves when more may be written. The buffer is kept for a while, and must not change. */
  write(bytes: Uint8Array): Promise<void> {
    return this.#gzip === null ? this.#store(bytes) : this.#gzip.write(bytes);
  }

  async finish(): Promise<StoredFile> {
    await this.#gzip?.end();
    const ref = await this.#writer.commit();
    return { ref, bytes: this.bytes, sha256: this.#hash.digest('hex') };
  }

  async discard(): Promise<void> {
    await this.#gzip?.discard();
    await this.#writer.discard();
  }

  async #store(bytes: Uint8Array): Promise<void> {
    this.#hash.update(bytes);
    this.bytes += bytes.length;
    await this.#writer.write(bytes);
  }
}
