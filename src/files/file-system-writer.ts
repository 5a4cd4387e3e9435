import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { FILE_SYNC_BYTES } from '../domain/limits.ts';
import { type KeepAlive, keepAlive } from '../poller.ts';
import { ioError } from './disk.ts';
import type { FileRef, FileWriter } from './file-store.ts';

/** A new file's temporary and final place. */
export interface NewFile {
  readonly ref: FileRef;
  readonly temporaryPath: string;
  readonly path: string;
  /** A file that waits for its bytes is touched this often: sweeps go by age. */
  readonly touchMs: number;
  /** Makes the directory of `path` and resolves to a function that makes an entry in it durable. */
  makeDirectory(): Promise<() => Promise<void>>;
}

/**
 * Writes under a temporary name; `commit` makes the bytes durable, then the name. While it writes it lets the
 * disk take what is there every FILE_SYNC_BYTES, so that the sync in `commit` has little left to wait for.
 */
export class FileSystemWriter implements FileWriter {
  readonly ref: FileRef;
  readonly #file: NewFile;
  readonly #handle: FileHandle;
  readonly #touching: KeepAlive;
  #unsynced = 0;
  /** The sync under way, if any. Never rejects: a failure is kept in #syncError. */
  #syncing: Promise<void> | null = null;
  #syncError: unknown = null;
  #renamed = false;
  #state: 'open' | 'committed' | 'discarded' = 'open';

  private constructor(file: NewFile, handle: FileHandle) {
    this.ref = file.ref;
    this.#file = file;
    this.#handle = handle;
    this.#touching = keepAlive(file.touchMs, async () => {
      await handle.utimes(new Date(), new Date());
      return true;
    });
  }

  /** @throws TransientError if the directory cannot be written. */
  static async create(file: NewFile): Promise<FileSystemWriter> {
    try {
      return new FileSystemWriter(file, await open(file.temporaryPath, 'wx', 0o640));
    } catch (error) {
      throw ioError('creating a file', error);
    }
  }

  async write(bytes: Uint8Array): Promise<void> {
    this.#check();
    try {
      let written = 0;
      while (written < bytes.length) {
        written += (await this.#handle.write(bytes, written)).bytesWritten;
      }
    } catch (error) {
      throw ioError('writing a file', error);
    }
    this.#unsynced += bytes.length;
    if (this.#unsynced >= FILE_SYNC_BYTES && this.#syncing === null) this.#startSync();
  }

  async commit(): Promise<FileRef> {
    this.#check();
    await this.#syncing;
    this.#check();
    try {
      await this.#handle.sync();
      await this.#handle.close();
      const syncDirectory = await this.#file.makeDirectory();
      await rename(this.#file.temporaryPath, this.#file.path);
      this.#renamed = true;
      await syncDirectory();
      this.#state = 'committed';
      this.#touching.stop();
    } catch (error) {
      throw ioError('completing a file', error);
    }
    return this.#file.ref;
  }

  async discard(): Promise<void> {
    if (this.#state !== 'open') return;
    this.#state = 'discarded';
    this.#touching.stop();
    await this.#syncing;
    // After a `commit` that failed half-way the file may be closed already, and have its final name.
    await this.#handle.close().catch(() => undefined);
    await rm(this.#file.temporaryPath, { force: true });
    if (this.#renamed) await rm(this.#file.path, { force: true });
  }

  #startSync(): void {
    this.#unsynced = 0;
    this.#syncing = this.#handle
      .datasync()
      .catch((error: unknown) => {
        this.#syncError = error;
      })
      .finally(() => {
        this.#syncing = null;
      });
  }

  #check(): void {
    if (this.#syncError !== null) throw ioError('writing a file', this.#syncError);
    if (this.#state !== 'open') throw new Error(`the file is already ${this.#state}`);
  }
}
