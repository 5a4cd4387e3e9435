import { open, stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { messageOf, TransientError } from '../base/errors.ts';
import { MissingFileError } from './file-store.ts';

export interface Disk {
  readonly folder: string;
  /** Tells one disk from another. */
  readonly device: number;
  /** The space left to this user. */
  readonly freeBytes: number;
  readonly allBytes: number;
}

const MiB = 1024 * 1024;
/** Two segments of PostgreSQL's log, without which it does not start. */
const leastBytes = 32 * MiB;

/** Returns where this process writes: the data directory, and the files unless they are on S3. */
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

/** So little is left that PostgreSQL, or an upload, fails for it. */
export function isFull({ freeBytes }: Pick<Disk, 'freeBytes'>): boolean {
  return freeBytes < leastBytes;
}

/** The folder, or the first one above it that is there. */
async function nearestFolder(wanted: string): Promise<Pick<Disk, 'folder' | 'device'>> {
  for (let folder = wanted; ; folder = dirname(folder)) {
    try {
      return { folder, device: (await stat(folder)).dev };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || folder === dirname(folder)) throw error;
    }
  }
}

const diskFull: ReadonlySet<string | undefined> = new Set(['ENOSPC', 'EDQUOT']);

/** Translates a failed call of the file system. All but a missing file works again once an operator mends space, rights or mount. */
export function ioError(doing: string, cause: unknown): Error {
  const code = codeOf(cause);
  if (code === 'ENOENT') return new MissingFileError(`${doing}: the file is gone`, { cause });
  if (diskFull.has(code)) return new TransientError(`disk full while ${doing} (${code})`, { cause });
  const reason = messageOf(cause);
  return new TransientError(`file system error while ${doing}: ${reason}`, { cause });
}

/** A disk that this process writes to has no room left. `isDiskFull` (sqlstate.ts) is true of the database server's, too. */
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

/** The `code` of a system error, such as ENOENT. */
export function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException | null | undefined)?.code;
}
