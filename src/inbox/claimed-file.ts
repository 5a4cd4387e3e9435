import type { FileHandle } from 'node:fs/promises';
import { constants, lstat, mkdir, open, readdir, rename, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { TransientError } from '../domain/errors.ts';
import { type InboxFile, isSameFile } from '../domain/inbox.ts';
import { codeOf } from '../files/disk.ts';
import type { Inbox } from './context.ts';
import { hasOtherNames, identify } from './look.ts';
import { claimedFolder, markerSuffix } from './names.ts';
import { ensureFolder, syncFolder } from './real-folder.ts';

type Claim = Pick<
  InboxFile,
  'fileId' | 'environment' | 'folder' | 'name' | 'hasMarker' | 'inode' | 'size' | 'modifiedNs'
>;

/** Where a file was dropped, and where it lies while it is ours. */
export interface ClaimPaths {
  /** Absolute. */
  readonly dropFolder: string;
  readonly dropped: string;
  /** The file's own folder; nothing else of anybody's is in it. */
  readonly folder: string;
  readonly claimed: string;
}

export function claimPaths(inbox: Inbox, { environment, folder, fileId, name }: Claim): ClaimPaths {
  const dropFolder = join(inbox.path, environment, folder);
  const own = join(dropFolder, claimedFolder, fileId);
  return { dropFolder, dropped: join(dropFolder, name), folder: own, claimed: join(own, name) };
}

/**
 * Renames a dropped file into its hidden folder, unless somebody has put another in its place: then nothing moves. Its
 * marker goes first, so that none is left to mark the next file of that name.
 */
export async function moveIn(inbox: Inbox, claim: Claim): Promise<void> {
  const paths = claimPaths(inbox, claim);
  const there = await statOf(paths.dropped);
  if (there === null || !there.isFile() || !isSameFile(identify(there), claim)) return;
  await ensureFolder(join(paths.dropFolder, claimedFolder));
  await mkdir(paths.folder, { recursive: true });
  if (claim.hasMarker) await renameIfThere(paths.dropped + markerSuffix, paths.claimed + markerSuffix);
  await renameIfThere(paths.dropped, paths.claimed);
}

/**
 * Opens a claimed file; finishes the claim first where it was cut short. `gone`: it is in neither place. `changed`: what
 * was claimed is not what was looked at. Throws `TransientError` if the file system refuses.
 */
export async function openClaimed(
  inbox: Inbox,
  claim: Claim,
): Promise<FileHandle | 'gone' | 'changed' | 'unreadable'> {
  const { claimed } = claimPaths(inbox, claim);
  let handle = await tryOpening(claimed);
  if (handle === 'gone') {
    await orTransient('claiming a file', moveIn(inbox, claim));
    handle = await tryOpening(claimed);
  }
  if (typeof handle === 'string') return handle;
  if (await isUnchanged(handle, claim)) return handle;
  await handle.close();
  return 'changed';
}

/** Whether the open file is the one that was looked at, with the same content and no other name. */
export async function isUnchanged(handle: FileHandle, claim: Claim): Promise<boolean> {
  const stats = await handle.stat({ bigint: true });
  return stats.isFile() && !hasOtherNames(stats) && isSameFile(identify(stats), claim);
}

/** Gives a claimed file back its place, unless another is there by now; then false. */
export async function putBack(inbox: Inbox, claim: Claim): Promise<boolean> {
  const paths = claimPaths(inbox, claim);
  if ((await statOf(paths.dropped)) !== null) return false;
  await renameIfThere(paths.claimed, paths.dropped);
  await syncFolder(paths.dropFolder);
  await removeClaimFolder(paths);
  return true;
}

/** Removes the folder of a claim, which must not hold the file any more, with the marker and drafts that may be in it. */
export async function removeClaimFolder({ folder, claimed }: ClaimPaths): Promise<void> {
  try {
    for (const name of await readdir(folder)) {
      const path = join(folder, name);
      if (path === claimed + markerSuffix || name.startsWith('.')) await rm(path, { force: true });
    }
    await rmdir(folder);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
  }
}

/** Null if nothing is there. */
export async function statOf(path: string) {
  try {
    return await lstat(path, { bigint: true });
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return null;
    throw error;
  }
}

async function renameIfThere(from: string, to: string): Promise<void> {
  try {
    await rename(from, to);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
  }
}

/** A symbolic link is not followed, and nobody is waited for at the other end of a pipe. */
async function tryOpening(path: string): Promise<FileHandle | 'gone' | 'changed' | 'unreadable'> {
  try {
    return await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    const code = codeOf(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return 'gone';
    if (code === 'ELOOP' || code === 'ENXIO' || code === 'EISDIR') return 'changed';
    if (code === 'EACCES' || code === 'EPERM') return 'unreadable';
    throw new TransientError(`opening a claimed file: ${String(error)}`, { cause: error });
  }
}

async function orTransient<T>(doing: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    throw new TransientError(`file system error while ${doing}: ${String(cause)}`, { cause });
  }
}
