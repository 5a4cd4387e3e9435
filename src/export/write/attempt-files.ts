import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createGzip, type Gzip } from 'node:zlib';
import type { Logger } from 'pino';
import type { Compression, ExportFile } from '../../domain/export.ts';
import { READ_BYTES } from '../../domain/limits.ts';
import type { FileRef, FileStore, FileWriter } from '../../files/file-store.ts';

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

/** Low, because an export is read once or twice and compressing competes with the database for the processor. */
const GZIP_LEVEL = 2;

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
  readonly #gzip: Gzip | null;
  readonly #storing: Promise<void>;

  constructor(writer: FileWriter, compression: Compression) {
    this.#writer = writer;
    this.#gzip = compression === 'none' ? null : createGzip({ level: GZIP_LEVEL, chunkSize: READ_BYTES });
    this.#storing = this.#gzip === null ? Promise.resolve() : this.#storePacked(this.#gzip);
    // Awaited in `finish`, which may come long after a failure.
    this.#storing.catch(() => undefined);
  }

  /** Resolves when more may be written. The buffer is kept for a while, and must not change. */
  async write(bytes: Uint8Array): Promise<void> {
    if (this.#gzip === null) return this.#store(bytes);
    // zlib works on a thread of its own; it is waited for only when it has plenty to do.
    if (this.#gzip.destroyed) return this.#storing;
    if (!this.#gzip.write(bytes)) await Promise.race([once(this.#gzip, 'drain'), this.#storing]);
  }

  async finish(): Promise<StoredFile> {
    this.#gzip?.end();
    await this.#storing;
    const ref = await this.#writer.commit();
    return { ref, bytes: this.bytes, sha256: this.#hash.digest('hex') };
  }

  async discard(): Promise<void> {
    this.#gzip?.destroy();
    await this.#storing.catch(() => undefined);
    await this.#writer.discard();
  }

  async #storePacked(gzip: Gzip): Promise<void> {
    for await (const bytes of gzip as AsyncIterable<Buffer>) await this.#store(bytes);
  }

  async #store(bytes: Uint8Array): Promise<void> {
    this.#hash.update(bytes);
    this.bytes += bytes.length;
    await this.#writer.write(bytes);
  }
}
