import { close, createReadStream, open as openCallback, type PathLike, read } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { uuidv7 } from 'uuidv7';
import { Fault } from '../domain/errors.ts';
import { READ_BYTES } from '../domain/limits.ts';
import type { FileRef, FileStore, FileWriter } from './file-store.ts';
import { FileSystemWriter } from './file-system-writer.ts';
import { codeOf, ioError } from './io-error.ts';

export interface FileSystemStore extends FileStore {
  /** Removes temporary files not written to for `olderThanMs` (left by a killed process); how many there were. */
  sweepTemporary(olderThanMs: number): Promise<number>;
}

const temporary = 'tmp';
const refPattern = /^\d{4}-\d{2}-\d{2}\/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/**
 * Keeps files in `directory`, which is made if it is missing: `<day>/<uuid v7>` when complete, `tmp/<uuid>` before.
 * All its methods throw `TransientError` when the file system refuses (disk full, permissions, a lost mount).
 */
export function createFileSystemStore(directory: string): FileSystemStore {
  const pathOf = (ref: FileRef) => path.join(directory, checkRef(ref));
  return {
    create: () => createWriter(directory),
    readRange: (ref, start, end) => readRange(pathOf(ref), start, end),
    open: (ref) => openStream(pathOf(ref)),
    remove: (ref) => removeFile(pathOf(ref)),
    sweepTemporary: (olderThanMs) => sweep(path.join(directory, temporary), Date.now() - olderThanMs),
  };
}

/** Refs are generated here; anything else is a bug of ours or somebody's trick, and names no file. */
function checkRef(ref: string): string {
  if (!refPattern.test(ref)) throw new Fault('not the name of a stored file');
  return ref;
}

async function createWriter(directory: string): Promise<FileWriter> {
  const id = uuidv7();
  const ref = checkRef(`${new Date().toISOString().slice(0, 10)}/${id}`) as FileRef;
  const file = path.join(directory, ref);
  try {
    await mkdir(path.join(directory, temporary), { recursive: true });
  } catch (error) {
    throw ioError('creating a directory', error);
  }
  return FileSystemWriter.create({
    ref,
    path: file,
    temporaryPath: path.join(directory, temporary, id),
    makeDirectory: async () => {
      await mkdir(path.dirname(file), { recursive: true });
      return async () => {
        await syncDirectory(path.dirname(file));
        await syncDirectory(directory);
      };
    },
  });
}

/** Windows has no such thing: there the name is durable with the file. */
async function syncDirectory(directory: string): Promise<void> {
  if (process.platform === 'win32') return;
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function readRange(file: string, start: number, end: number): Promise<Buffer> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(file, 'r');
    return await readExactly(handle, start, end);
  } catch (error) {
    throw error instanceof Fault ? error : ioError('reading a file', error);
  } finally {
    await handle?.close();
  }
}

async function readExactly(handle: FileHandle, start: number, end: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafeSlow(end - start);
  let filled = 0;
  while (filled < bytes.length) {
    const { bytesRead } = await handle.read(bytes, filled, bytes.length - filled, start + filled);
    if (bytesRead === 0) throw new Fault(`the stored file ends at byte ${start + filled}, not at ${end}`);
    filled += bytesRead;
  }
  return bytes;
}

/** Only opening is wrapped: that is where a missing file shows. */
function openStream(file: string): Readable {
  const openMapped = (
    name: PathLike,
    flags: number,
    mode: number,
    done: (e: Error | null, fd: number) => void,
  ) => openCallback(name, flags, mode, (error, fd) => done(error && ioError('opening a file', error), fd));
  return createReadStream(file, { highWaterMark: READ_BYTES, fs: { open: openMapped, read, close } });
}

async function removeFile(file: string): Promise<void> {
  try {
    await rm(file, { force: true });
  } catch (error) {
    throw ioError('removing a file', error);
  }
}

async function sweep(directory: string, before: number): Promise<number> {
  let removed = 0;
  for (const name of await listNames(directory)) {
    const file = path.join(directory, name);
    const modified = await stat(file).then(
      (found) => found.mtimeMs,
      () => Number.POSITIVE_INFINITY,
    );
    if (modified >= before) continue;
    await removeFile(file);
    removed++;
  }
  return removed;
}

async function listNames(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return [];
    throw ioError('listing temporary files', error);
  }
}
