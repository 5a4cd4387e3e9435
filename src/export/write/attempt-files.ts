import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { constants, crc32, deflateRaw } from 'node:zlib';
import type { Logger } from 'pino';
import { KiB } from '../../base/limits.ts';
import type { Compression, ExportFile } from '../../domain/export.ts';
import type { FileRef, FileStore, FileWriter } from '../../files/file-store.ts';

/** Bytes that a thread compresses at a time. */
const GZIP_BLOCK_BYTES = 256 * KiB;
const MAX_GZIP_BLOCKS = 4;

export class AttemptFiles {
  readonly #store: FileStore;
  readonly #open = new Set<StoredFileWriter>();
  readonly #files: ExportFile[] = [];

  constructor(store: FileStore) {
    this.#store = store;
  }

  get files(): readonly ExportFile[] {
    return this.#files;
  }

  /** Creates a file. `splitBytes` also limits the size of the blocks that are compressed. */
  async create(compression: Compression, splitBytes = GZIP_BLOCK_BYTES): Promise<StoredFileWriter> {
    const writer = new StoredFileWriter(await this.#store.create(), compression, splitBytes);
    this.#open.add(writer);
    return writer;
  }

  async finish(
    writer: StoredFileWriter,
    about: Pick<ExportFile, 'filename' | 'dataset' | 'rows'>,
  ): Promise<ExportFile> {
    const file = { ...about, ...(await writer.finish()) };
    this.#open.delete(writer);
    this.#files.push(file);
    return file;
  }

  /** Removes all files of the attempt. A failed removal is logged, because nothing retries it. */
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

interface StoredFile {
  readonly ref: FileRef;
  readonly bytes: number;
  readonly sha256: string;
}

export class StoredFileWriter {
  /** Number of bytes stored so far, without the bytes that are still being compressed. */
  bytes = 0;
  readonly #writer: FileWriter;
  readonly #hash = createHash('sha256');
  readonly #gzip: GzipBlocks | null;

  constructor(writer: FileWriter, compression: Compression, splitBytes = GZIP_BLOCK_BYTES) {
    this.#writer = writer;
    const blockBytes = Math.min(GZIP_BLOCK_BYTES, splitBytes);
    this.#gzip = compression === 'none' ? null : new GzipBlocks(blockBytes, (bytes) => this.#store(bytes));
  }

  /** Resolves when the next write may begin. The buffer must not change after the call. */
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

const deflate = promisify(deflateRaw);

/**
 * Compression is weak, because an export is read once or twice, and the database needs the
 * processor.
 */
const level = 2;
/** Initial size of the memory for a compressed block. The memory can grow. */
const packedBytes = 64 * 1024;
const windowBytes = 32 * 1024;
/** Header of a gzip member: magic number, deflate, no flags, no time, no extra flags, Unix. */
const header = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]);
/** Empty final block of a deflate stream. */
const end = Buffer.from([0x03, 0x00]);

/**
 * Compresses a file on several threads into a single gzip member, because some readers stop after
 * the first member. Each block uses the end of the previous one as its dictionary and ends at a
 * byte boundary.
 */
export class GzipBlocks {
  readonly #blockBytes: number;
  readonly #store: (bytes: Uint8Array) => Promise<void>;
  readonly #packing: { readonly block: Buffer<ArrayBuffer>; readonly packed: Promise<Buffer> }[] = [];
  #block: Buffer<ArrayBuffer>;
  #filled = 0;
  #before: Buffer<ArrayBuffer> = Buffer.alloc(0);
  #crc = 0;
  #bytes = 0;
  #isBegun = false;

  /** The writer calls `store` for the blocks in file order, one call at a time. */
  constructor(blockBytes: number, store: (bytes: Uint8Array) => Promise<void>) {
    this.#blockBytes = blockBytes;
    this.#store = store;
    this.#block = Buffer.allocUnsafeSlow(blockBytes);
  }

  /** Copies the bytes. Only one call may be pending. */
  async write(bytes: Uint8Array): Promise<void> {
    let at = 0;
    while (at < bytes.length) {
      const part = bytes.subarray(at, at + this.#blockBytes - this.#filled);
      this.#block.set(part, this.#filled);
      this.#filled += part.length;
      at += part.length;
      if (this.#filled === this.#blockBytes) await this.#endBlock();
    }
  }

  /**
   * Writes the remaining blocks and the end of the member. Must be called once, after the last
   * write.
   */
  async end(): Promise<void> {
    if (this.#filled > 0) this.#pack();
    while (this.#packing.length > 0) await this.#storeFirst();
    const sums = Buffer.alloc(8);
    sums.writeUInt32LE(this.#crc);
    sums.writeUInt32LE(this.#bytes % 2 ** 32, 4);
    await this.#store(Buffer.concat([...(this.#isBegun ? [] : [header]), end, sums]));
  }

  /** Waits for the threads that compress blocks. */
  async discard(): Promise<void> {
    await Promise.allSettled(this.#packing.map(({ packed }) => packed));
  }

  async #endBlock(): Promise<void> {
    this.#pack();
    const free = this.#packing.length < MAX_GZIP_BLOCKS ? null : await this.#storeFirst();
    this.#block = free ?? Buffer.allocUnsafeSlow(this.#blockBytes);
  }

  #pack(): void {
    const block = this.#block.subarray(0, this.#filled);
    this.#crc = crc32(block, this.#crc);
    this.#bytes += block.length;
    const packed = deflate(block, {
      level,
      chunkSize: packedBytes,
      finishFlush: constants.Z_SYNC_FLUSH,
      ...(this.#before.length === 0 ? {} : { dictionary: this.#before }),
    });
    // `packed` is awaited later, in file order. Without this handler, a rejection before then would
    // end the process.
    packed.catch(() => undefined);
    this.#packing.push({ block: this.#block, packed });
    // zlib copies the dictionary, so its memory may be reused.
    this.#before = block.subarray(-windowBytes);
    this.#filled = 0;
  }

  /** Stores the oldest block. Returns its uncompressed buffer for reuse. */
  async #storeFirst(): Promise<Buffer<ArrayBuffer> | null> {
    const first = this.#packing.shift();
    if (first === undefined) return null;
    const packed = await first.packed;
    if (!this.#isBegun) await this.#store(header);
    this.#isBegun = true;
    await this.#store(packed);
    return first.block;
  }
}
