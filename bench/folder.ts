import { accessSync, constants, statfsSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const memoryDisk = '/dev/shm';
/** File system type of a tmpfs. */
const tmpfs = 0x01021994;
/** Bytes that the largest bench needs by default for its files and its WAL. */
const roomNeeded = 12 * 2 ** 30;

/**
 * TMPDIR if it is set. Otherwise, the tmpfs or, if the tmpfs is too small, the system's temporary
 * folder.
 */
const parent = process.env['TMPDIR'] ?? (hasRoom(memoryDisk) ? memoryDisk : tmpdir());

/** Says where the data is, because the figures of benches depend on the disk. */
export const diskOfBenches = `data in ${parent} (${isInMemory(parent) ? 'tmpfs' : 'a disk'})`;

export function makeFolder(prefix: string): Promise<string> {
  return mkdtemp(join(parent, prefix));
}

function hasRoom(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    const { bavail, bsize } = statfsSync(path);
    return isInMemory(path) && bavail * bsize > roomNeeded;
  } catch {
    return false;
  }
}

function isInMemory(path: string): boolean {
  return statfsSync(path).type === tmpfs;
}
