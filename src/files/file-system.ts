import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { Fault, TransientError } from '../base/errors.ts';
import { FILE_TOUCH_MS, MiB, READ_BYTES } from '../base/limits.ts';
import { type KeepAlive, keepAlive } from '../base/timers.ts';
import { uuidv7 } from '../base/uuid.ts';
import { codeOf, ioError, syncFolder } from './disk.ts';
import {
  checkFolder,
  checkRef,
  createRef,
  type FileRef,
  type FileStore,
  type FileWriter,
  isRef,
  streamOf,
} from './file-store.ts';

const FILE_SYNC_BYTES = 16 * MiB;

const temporary = 'tmp';

/**
 * Stores files in `directory`, which is created when necessary. A file is named `tmp/<uuid>` until
 * it is complete, then `<date>/<uuid v7>`. A file of a `FileFolder` is written in its folder, and
 * its name ends in `.part` until it is complete.
 * @throws TransientError on a full disk, missing permissions or a lost mount
 */
export function createFileSystemStore(directory: string, touchMs = FILE_TOUCH_MS): FileStore {
  const pathOf = (ref: FileRef) => path.join(directory, checkRef(ref));
  const temporaryPath = (name: string) => path.join(directory, temporary, name);
  const check = createFolderCheck(path.join(directory, temporary));
  return {
    location: pathToFileURL(directory).href,
    async create(folder) {
      const ref = createRef(folder);
      const draft =
        folder === undefined ? temporaryPath(path.basename(ref)) : `${path.join(directory, ref)}.part`;
      return FileSystemWriter.create({ directory, ref, draft, touchMs });
    },
    createAs: (ref) =>
      FileSystemWriter.create({ directory, ref: checkRef(ref), draft: temporaryPath(uuidv7()), touchMs }),
    size: (ref) => sizeOf(pathOf(ref)),
    readRange: (ref, start, end) => readRange(pathOf(ref), start, end),
    open: (ref, range) => streamOf(readPieces(pathOf(ref), range)),
    list: (kind) => listFiles(directory, kind),
    remove: (ref) => removeFile(pathOf(ref)),
    removeFolder: async (folder) => removeFolder(path.join(directory, checkFolder(folder))),
    check,
    sweepTemporary: (olderThanMs) => sweep(path.join(directory, temporary), Date.now() - olderThanMs),
  };
}

async function attempt<T>(activity: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw ioError(activity, error);
  }
}

/** Syncs a folder and its parents. A folder is durable only after its parent has been synced. */
async function syncUpTo(directory: string, folder: string): Promise<void> {
  for (let at = folder; ; at = path.dirname(at)) {
    await syncFolder(at);
    if (at === directory || at === path.dirname(at)) return;
  }
}

async function readRange(file: string, start: number, end: number): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of readPieces(file, { start, end }, end - start)) pieces.push(piece);
  return pieces.length === 1 && pieces[0] !== undefined ? pieces[0] : Buffer.concat(pieces);
}

/** Yields all bytes, or exactly [start, end), in pieces of at most `max` bytes. */
async function* readPieces(
  file: string,
  range?: { readonly start: number; readonly end: number },
  max = READ_BYTES,
): AsyncGenerator<Buffer> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(file, 'r');
    const { start, end } = range ?? { start: 0, end: Number.POSITIVE_INFINITY };
    let at = start;
    while (at < end) {
      const length = Math.min(max, end - at);
      const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafeSlow(length), 0, length, at);
      if (bytesRead === 0 && range === undefined) return;
      if (bytesRead === 0) throw new Fault(`the stored file ends at byte ${at}, not at ${end}`);
      at += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } catch (error) {
    throw error instanceof Fault ? error : ioError('reading a file', error);
  } finally {
    await handle?.close();
  }
}

async function sizeOf(file: string): Promise<number | null> {
  const stats = await attempt('looking at a file', nullIfMissing(stat(file)));
  return stats?.size ?? null;
}

function nullIfMissing<T>(work: Promise<T>): Promise<T | null> {
  return work.catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return null;
    throw error;
  });
}

async function* listFiles(directory: string, kind: string): ReturnType<FileStore['list']> {
  const listing = readdir(path.join(directory, kind), { recursive: true, withFileTypes: true });
  for (const entry of (await attempt('listing files', nullIfMissing(listing))) ?? []) {
    const name = path.relative(directory, path.join(entry.parentPath, entry.name)).replaceAll(path.sep, '/');
    if (!entry.isFile() || !isRef(name)) continue;
    const bytes = await sizeOf(path.join(directory, name));
    if (bytes !== null) yield { ref: name, bytes };
  }
}

const removeFile = (file: string) => attempt('removing a file', rm(file, { force: true }));

/** A process that has not noticed the removal may still write into the folder. */
function removeFolder(folder: string): Promise<void> {
  const work = rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 });
  return attempt('removing a folder', work);
}

async function sweep(directory: string, before: number): Promise<number> {
  let removed = 0;
  for (const name of (await attempt('listing temporary files', nullIfMissing(readdir(directory)))) ?? []) {
    const file = path.join(directory, name);
    const modified = await stat(file).then(
      (stats) => stats.mtimeMs,
      () => Number.POSITIVE_INFINITY,
    );
    if (modified >= before) continue;
    await removeFile(file);
    removed++;
  }
  return removed;
}

const sample = Buffer.from('can this be written?\n');

/**
 * Checks that a file can be written. Only the first call creates the folder: if it is missing
 * later, somebody removed it, or its mount was lost.
 * @throws TransientError
 */
function createFolderCheck(folder: string): () => Promise<void> {
  let isCreated = false;
  return async () => {
    try {
      if (!isCreated) await mkdir(folder, { recursive: true, mode: 0o700 });
      isCreated = true;
      await writeSample(path.join(folder, uuidv7()));
    } catch (cause) {
      throw new TransientError('files cannot be stored', { cause });
    }
  };
}

async function writeSample(file: string): Promise<void> {
  const handle = await open(file, 'wx', 0o600);
  try {
    await handle.write(sample);
  } finally {
    await handle.close();
    await rm(file, { force: true });
  }
}

interface NewFile {
  readonly directory: string;
  readonly ref: FileRef;
  readonly draft: string;
  /** Interval at which the file is touched. Sweeps remove unfinished files that are not touched. */
  readonly touchMs: number;
}

/** Syncs the file after every FILE_SYNC_BYTES, so that `commit` has little to sync. */
class FileSystemWriter implements FileWriter {
  readonly ref: FileRef;
  readonly #file: NewFile;
  readonly #path: string;
  readonly #handle: FileHandle;
  readonly #touching: KeepAlive;
  #unsynced = 0;
  /** The sync that is running. It never rejects: a failure is in `#syncError`. */
  #syncing: Promise<void> | null = null;
  #syncError: unknown = null;
  #isRenamed = false;
  #state: 'open' | 'committed' | 'discarded' = 'open';

  private constructor(file: NewFile, handle: FileHandle) {
    this.ref = file.ref;
    this.#file = file;
    this.#path = path.join(file.directory, file.ref);
    this.#handle = handle;
    this.#touching = keepAlive(file.touchMs, async () => {
      await handle.utimes(new Date(), new Date());
      return true;
    });
  }

  /**
   * Creates the unfinished file.
   * @throws TransientError if the directory cannot be written.
   */
  static async create(file: NewFile): Promise<FileSystemWriter> {
    await attempt('creating a directory', mkdir(path.dirname(file.draft), { recursive: true, mode: 0o700 }));
    const handle = await attempt('creating a file', open(file.draft, 'wx', 0o600));
    return new FileSystemWriter(file, handle);
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
      const folder = path.dirname(this.#path);
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await rename(this.#file.draft, this.#path);
      this.#isRenamed = true;
      await syncUpTo(this.#file.directory, folder);
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
    // A failed `commit` may have closed or renamed the file.
    await this.#handle.close().catch(() => undefined);
    await rm(this.#file.draft, { force: true });
    if (this.#isRenamed) await rm(this.#path, { force: true });
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
