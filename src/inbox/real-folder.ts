import { lstat, mkdir, open } from 'node:fs/promises';
import { TransientError } from '../domain/errors.ts';
import { codeOf } from '../files/disk.ts';
import type { DropFolder } from './context.ts';

/** Null unless it is there and a folder, and not a symbolic link to one. */
export async function findFolder(path: string): Promise<DropFolder | null> {
  try {
    const { dev, isDirectory } = await statOf(path);
    return isDirectory ? { path, device: dev } : null;
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return null;
    throw error;
  }
}

/** Whether something is there that is no folder: a file, or a symbolic link. */
export async function isInTheWay(path: string): Promise<boolean> {
  try {
    return !(await statOf(path)).isDirectory;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false;
    throw error;
  }
}

/** Makes it, unless something of that name is there. */
export async function offerFolder(path: string): Promise<void> {
  try {
    await mkdir(path);
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  }
}

/** Makes it if need be. Throws `TransientError` if something else is there: it might lead out of the inbox. */
export async function ensureFolder(path: string): Promise<void> {
  await offerFolder(path);
  if ((await findFolder(path)) === null) throw new TransientError(`${path} is in the way: it is no folder`);
}

/** Makes what was renamed within the folder survive a power cut. */
export async function syncFolder(path: string): Promise<void> {
  if (process.platform === 'win32') return;
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function statOf(path: string): Promise<{ dev: bigint; isDirectory: boolean }> {
  const stats = await lstat(path, { bigint: true });
  return { dev: stats.dev, isDirectory: stats.isDirectory() };
}
