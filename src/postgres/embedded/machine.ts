import { readFile, statfs } from 'node:fs/promises';
import { totalmem } from 'node:os';

export type DynamicSharedMemory = 'posix' | 'sysv' | 'mmap' | 'windows';

/** What the settings depend on. */
export interface Machine {
  /** Bytes this process may use: the machine's memory, or the container's limit. */
  readonly memoryBytes: number;
  readonly dynamicSharedMemory: DynamicSharedMemory;
  readonly platform: string;
}

/** A parallel hash join over work_mem × workers must fit; Docker's default /dev/shm of 64 MiB does not. */
const minSharedBytes = 512 * 1024 * 1024;

export async function inspectMachine(): Promise<Machine> {
  const limit = process.constrainedMemory();
  const total = totalmem();
  return {
    memoryBytes: limit > 0 && limit < total ? limit : total,
    dynamicSharedMemory: await chooseSharedMemory(),
    platform: process.platform,
  };
}

/**
 * Where parallel queries keep what they share. posix lives in /dev/shm, which containers often keep tiny: a query
 * then fails in the middle with "could not resize shared memory segment". sysv is not bound by that mount;
 * mmap (files in the data directory) always works but goes through the disk.
 */
async function chooseSharedMemory(): Promise<DynamicSharedMemory> {
  if (process.platform === 'win32') return 'windows';
  if (process.platform !== 'linux') return 'posix';
  try {
    const { bavail, bsize } = await statfs('/dev/shm');
    if (bavail * bsize >= minSharedBytes) return 'posix';
  } catch {
    // No /dev/shm at all.
  }
  try {
    const maxSegment = Number(await readFile('/proc/sys/kernel/shmmax', 'utf8'));
    return maxSegment >= minSharedBytes ? 'sysv' : 'mmap';
  } catch {
    return 'mmap';
  }
}
