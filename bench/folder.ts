import { accessSync, constants, statfsSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const memoryDisk = '/dev/shm';
/** statfs calls a tmpfs this. */
const tmpfs = 0x01021994;
/** What the largest of them needs by default, with its files and its WAL. */
const roomNeeded = 12 * 2 ** 30;

/** Where data of benches lies: where TMPDIR says, else in memory if there is room, else where temporary files go. */
const parent = process.env['TMPDIR'] ?? (hasRoom(memoryDisk) ? memoryDisk : tmpdir());

/** What every figure has to say of the disk. */
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
