import { open, stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { messageOf, TransientError } from '../base/errors.ts';
import { MissingFileError } from './file-store.ts';

export interface Disk {
  readonly folder: string;
  /** Number of the device, which identifies the disk. */
  readonly device: number;
  /** Bytes that this user may still write. */
  readonly freeBytes: number;
  readonly allBytes: number;
}

const MiB = 1024 * 1024;
/** Two segments of PostgreSQL's log. PostgreSQL does not start without them. */
const leastBytes = 32 * MiB;

/**
 * Returns the folders that this process writes: the data directory, and the files unless they are
 * on S3.
 */
export function foldersWritten(settings: {
  readonly dataDir: string;
  readonly filesDir: string;
  readonly storage: { readonly kind: 'folder' | 's3' };
}): string[] {
  return [settings.dataDir, ...(settings.storage.kind === 'folder' ? [settings.filesDir] : [])];
}

export async function readDisk(folder: string): Promise<Disk> {
  const nearest = await nearestFolder(folder);
  const { bavail, blocks, bsize } = await statfs(nearest.folder);
  return { folder, device: nearest.device, freeBytes: bavail * bsize, allBytes: blocks * bsize };
}

/** Returns true if PostgreSQL or an upload would fail for lack of space. */
export function isFull({ freeBytes }: Pick<Disk, 'freeBytes'>): boolean {
  return freeBytes < leastBytes;
}

/** Returns the folder, or the nearest existing one above it. */
async function nearestFolder(path: string): Promise<Pick<Disk, 'folder' | 'device'>> {
  for (let folder = path; ; folder = dirname(folder)) {
    try {
      return { folder, device: (await stat(folder)).dev };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || folder === dirname(folder)) throw error;
    }
  }
}

const diskFull: ReadonlySet<string | undefined> = new Set(['ENOSPC', 'EDQUOT']);

/**
 * Translates a failed call of the file system. Every error except a missing file may pass once an
 * operator corrects space, rights or mount.
 */
export function ioError(activity: string, cause: unknown): Error {
  const code = codeOf(cause);
  if (code === 'ENOENT') return new MissingFileError(`${activity}: the file is gone`, { cause });
  if (diskFull.has(code)) return new TransientError(`disk full while ${activity} (${code})`, { cause });
  const reason = messageOf(cause);
  return new TransientError(`file system error while ${activity}: ${reason}`, { cause });
}

/**
 * Returns true if a disk of this process is full. `isDiskFull` (sqlstate.ts) includes the disk of
 * the database server.
 */
export function isFileSystemFull(error: unknown): boolean {
  return diskFull.has(codeOf(error)) || (error instanceof Error && diskFull.has(codeOf(error.cause)));
}

/** Makes the names in the folder durable. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Returns the `code` of a system error, such as ENOENT. */
export function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException | null | undefined)?.code;
}
