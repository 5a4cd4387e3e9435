import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { constants, crc32, deflateRaw } from 'node:zlib';
import type { Logger } from 'pino';
import { KiB } from '../../base/bytes.ts';
import type { Compression, ExportFile } from '../../domain/export.ts';
import type { FileRef, FileStore, FileWriter } from '../../files/file-store.ts';

/** Bytes that one thread packs at a time, and the number of blocks held. */
const GZIP_BLOCK_BYTES = 256 * KiB;
const MAX_GZIP_BLOCKS = 4;

/** The files of one attempt: all of them, or none. */
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

  /** Creates a file. Blocks never exceed `splitBytes`, at which a packed file is split. */
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

  /** Removes all files. Logs failures, because nothing repeats the removal. */
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

/** Writes one file, packed if required, and hashes the stored bytes. */
export class StoredFileWriter {
  /** Stored bytes, without the bytes that are being packed. */
  bytes = 0;
  readonly #writer: FileWriter;
  readonly #hash = createHash('sha256');
  readonly #gzip: GzipBlocks | null;

  constructor(writer: FileWriter, compression: Compression, splitBytes = GZIP_BLOCK_BYTES) {
    this.#writer = writer;
    const blockBytes = Math.min(GZIP_BLOCK_BYTES, splitBytes);
    this.#gzip = compression === 'none' ? null : new GzipBlocks(blockBytes, (bytes) => this.#store(bytes));
  }

  /** Resolves when more may be written. The buffer must not change afterwards. */
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
 * Low level: exports are read once or twice, and compression competes with the database for CPU.
 */
const level = 2;
/** Initial memory of a packed block in bytes. It can grow. */
const packedBytes = 64 * 1024;
/** Window of deflate in bytes. */
const windowBytes = 32 * 1024;
/** Gzip, deflate, no flags, no time, no extra flags, Unix. */
const header = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]);
/** Empty last block of deflate. */
const end = Buffer.from([0x03, 0x00]);

/**
 * Packs a file on several threads. Each block of `blockBytes` uses the end of the previous one as
 * its dictionary and ends on a whole byte, so the file is one gzip member. Some readers stop after
 * the first of several members. Holds at most `MAX_GZIP_BLOCKS`.
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

  /** `store` receives the file in order, one call at a time. */
  constructor(blockBytes: number, store: (bytes: Uint8Array) => Promise<void>) {
    this.#blockBytes = blockBytes;
    this.#store = store;
    this.#block = Buffer.allocUnsafeSlow(blockBytes);
  }

  /** Copies the bytes. Resolves when more may be written. Only one call at a time. */
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

  /** Call once, after the last write. */
  async end(): Promise<void> {
    if (this.#filled > 0) this.#pack();
    while (this.#packing.length > 0) await this.#storeFirst();
    const sums = Buffer.alloc(8);
    sums.writeUInt32LE(this.#crc);
    sums.writeUInt32LE(this.#bytes % 2 ** 32, 4);
    await this.#store(Buffer.concat([...(this.#isBegun ? [] : [header]), end, sums]));
  }

  /** Resolves when no packing is running. */
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
    // The result is awaited in order, perhaps long after a failure.
    packed.catch(() => undefined);
    this.#packing.push({ block: this.#block, packed });
    // zlib copies the dictionary.
    this.#before = block.subarray(-windowBytes);
    this.#filled = 0;
  }

  /** Stores the first block. Returns its memory for reuse. */
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
