import { accessSync, constants, statfsSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const memoryDisk = '/dev/shm';
/** Type of a tmpfs in statfs. */
const tmpfs = 0x01021994;
/** Bytes that the largest bench needs by default, with its files and its WAL. */
const roomNeeded = 12 * 2 ** 30;

/**
 * Folder for the data of benches: TMPDIR, else memory if there is room, else the folder of
 * temporary files.
 */
const parent = process.env['TMPDIR'] ?? (hasRoom(memoryDisk) ? memoryDisk : tmpdir());

/** The disk, which every figure has to name. */
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
