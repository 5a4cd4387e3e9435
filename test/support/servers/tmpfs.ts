import { execFile } from 'node:child_process';
import { mkdtemp, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** A disk of fixed size in memory. */
export interface SmallDisk {
  readonly path: string;
  /** Initial size in bytes. */
  readonly bytes: number;
  grow(bytes: number): Promise<void>;
  remove(): Promise<void>;
}

/**
 * Mounts a disk. This requires Linux, root, and a container that allows mounting. If it fails,
 * returns the reason as a string.
 */
export async function mountSmallDisk(bytes: number): Promise<SmallDisk | string> {
  if (process.platform !== 'linux') return 'only Linux has tmpfs';
  if (process.getuid?.() !== 0) return 'only root may mount a tmpfs';
  const path = await mkdtemp(join(tmpdir(), 'sluice-small-disk-'));
  try {
    await run('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'sluice-test', path]);
  } catch (error) {
    await rmdir(path);
    return `mounting a tmpfs is refused: ${error instanceof Error ? error.message : String(error)}`;
  }
  return {
    path,
    bytes,
    grow: async (size) => void (await run('mount', ['-o', `remount,size=${size}`, path])),
    async remove() {
      // Files on the disk may still be open, so an ordinary umount could fail.
      await run('umount', ['--lazy', path]);
      await rmdir(path);
    },
  };
}
