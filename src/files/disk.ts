import { open, stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { messageOf, TransientError } from '../base/errors.ts';
import { MiB } from '../base/limits.ts';
import { MissingFileError } from './file-store.ts';

export interface Disk {
  readonly folder: string;
  readonly device: number;
  /** Number of free bytes that are available to the user of this process. */
  readonly freeBytes: number;
  readonly allBytes: number;
}

/** PostgreSQL does not start without space for two segments of its write-ahead log. */
const leastBytes = 32 * MiB;

/** Folders that this process writes to: data and, unless on S3, files. */
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

/** True if too little space is free for PostgreSQL to start. */
export function isFull({ freeBytes }: Pick<Disk, 'freeBytes'>): boolean {
  return freeBytes < leastBytes;
}

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
 * Every error except a missing file is transient, because an operator can free space, change
 * permissions or mount the disk again.
 */
export function ioError(activity: string, cause: unknown): Error {
  const code = codeOf(cause);
  if (code === 'ENOENT') return new MissingFileError(`${activity}: the file is gone`, { cause });
  if (diskFull.has(code)) return new TransientError(`disk full while ${activity} (${code})`, { cause });
  const reason = messageOf(cause);
  return new TransientError(`file system error while ${activity}: ${reason}`, { cause });
}

/**
 * True for an error that reports a full disk of this process. `isDiskFull` (sqlstate.ts) also
 * recognises a full disk of the database server.
 */
export function isFileSystemFull(error: unknown): boolean {
  return diskFull.has(codeOf(error)) || (error instanceof Error && diskFull.has(codeOf(error.cause)));
}

/** Makes names of new files durable. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

export function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException | null | undefined)?.code;
}
