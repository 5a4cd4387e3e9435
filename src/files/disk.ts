import { stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Storage } from '../storage-url.ts';

/** The disk that a folder is on, or will be. */
export interface Disk {
  readonly folder: string;
  /** Tells one disk from another. */
  readonly device: number;
  /** What this user may still write. */
  readonly freeBytes: number;
  readonly allBytes: number;
}

const MiB = 1024 * 1024;
/** Two segments of PostgreSQL's log, without which it does not start. */
const leastBytes = 32 * MiB;

/** Where this process writes: the data directory, and the files unless they are on S3. */
export function foldersWritten(settings: {
  readonly dataDir: string;
  readonly filesDir: string;
  readonly storage: Pick<Storage, 'kind'>;
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
export async function nearestFolder(wanted: string): Promise<Pick<Disk, 'folder' | 'device'>> {
  for (let folder = wanted; ; folder = dirname(folder)) {
    try {
      return { folder, device: (await stat(folder)).dev };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || folder === dirname(folder)) throw error;
    }
  }
}
