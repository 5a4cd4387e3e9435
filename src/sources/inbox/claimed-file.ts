import { constants, type FileHandle, lstat, mkdir, open, readdir, rename, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { uuidv7 } from 'uuidv7';
import { TransientError } from '../../domain/errors.ts';
import { type InboxFile, type InboxFolder, type InboxOptions, isSameFile } from '../../domain/inbox.ts';
import { codeOf, syncFolder } from '../../files/disk.ts';
import type { Environment } from '../../postgres/stores/environments.ts';
import {
  dropInboxFile,
  insertInboxFiles,
  type NewInboxFile,
  openInboxFiles,
} from '../../postgres/stores/inbox-files.ts';
import { ensureFolder, hasOtherNames, identify, type SeenFile } from './folders.ts';
import {
  type Backoff,
  claimedFolder,
  type Inbox,
  type InboxContext,
  markerSuffix,
  type Warnings,
} from './inbox.ts';

type Claim = Pick<
  InboxFile,
  'fileId' | 'environment' | 'folder' | 'name' | 'hasMarker' | 'inode' | 'size' | 'modifiedNs'
>;

/** A file's original place, and its place while it is ours. */
interface ClaimPaths {
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
async function moveIn(inbox: Inbox, claim: Claim): Promise<void> {
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

/** Returns true if the open file is the one that was looked at, with the same content and no other name. */
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

/** Returns null if nothing is there. */
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

/** Rows of one statement. */
const filesAtATime = 500;

export interface ClaimTools {
  readonly warnings: Warnings;
  /** By path, for files that cannot be moved. */
  readonly backoff: Backoff<string>;
}

/**
 * Makes files ours, in the given order: first the ledger, then the file system. Dying in between does no harm: whoever takes
 * the file in moves it if that was not done yet.
 */
export async function claimFiles(
  context: InboxContext,
  inbox: Inbox,
  environment: Environment,
  ready: readonly SeenFile[],
  optionsOf: ReadonlyMap<InboxFolder, InboxOptions>,
  tools: ClaimTools,
): Promise<void> {
  for (let at = 0; at < ready.length; at += filesAtATime) {
    const rows = ready
      .slice(at, at + filesAtATime)
      .filter(({ folder, name }) => tools.backoff.isDue(pathOf(inbox, environment, folder, name)))
      .flatMap((file) => toRow(file, environment, optionsOf.get(file.folder)));
    const written = await insertInboxFiles(context.db, inbox.id, rows);
    const files = rows.filter(({ fileId }) => written.has(fileId));
    for (const file of files) await moveOrDrop(context, inbox, environment, file, tools);
    for (const folder of new Set(files.map(({ folder }) => folder))) {
      await syncFolder(join(inbox.path, environment.name, folder));
    }
    if (files.length > 0)
      context.log.info({ environment: environment.name, files: files.length }, 'inbox: files taken');
  }
}

function toRow(
  file: SeenFile,
  { environmentId }: Environment,
  options: InboxOptions | undefined,
): NewInboxFile[] {
  if (options === undefined) return [];
  const { folder, name, inode, size, modifiedNs, marked } = file;
  return [
    { fileId: uuidv7(), environmentId, folder, name, hasMarker: marked, options, inode, size, modifiedNs },
  ];
}

/** A file that this process may not move stays where it is, and others go on without it. */
async function moveOrDrop(
  context: InboxContext,
  inbox: Inbox,
  environment: Environment,
  file: NewInboxFile,
  { warnings, backoff }: ClaimTools,
): Promise<void> {
  const claim = { ...file, environment: environment.name };
  const path = pathOf(inbox, environment, file.folder, file.name);
  try {
    await moveIn(inbox, claim);
    backoff.succeeded(path);
  } catch (error) {
    if (!isRefusal(error)) throw error;
    warnings.warn(
      path,
      `cannot be moved (${codeOf(error)}): its folder must be writable for the user that sluice runs as`,
    );
    backoff.failed(path);
    await removeClaimFolder(claimPaths(inbox, claim)).catch(() => undefined);
    await dropInboxFile(context.db, file.fileId, 0);
  }
}

function isRefusal(error: unknown): boolean {
  return ['EACCES', 'EPERM', 'EXDEV', 'EROFS', 'ENAMETOOLONG'].includes(codeOf(error) ?? '');
}

function pathOf(inbox: Inbox, environment: Environment, folder: InboxFolder, name: string): string {
  return join(inbox.path, environment.name, folder, name);
}

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * Gives claimed files that the ledger knows nothing of their place back, to be taken anew: the database is another one, or
 * was restored from before they were claimed, and then their loads are gone with their rows.
 */
export async function putBackOrphans(
  context: InboxContext,
  inbox: Inbox,
  environment: string,
  folder: '' | 'users' | 'companies',
): Promise<void> {
  const claims = join(inbox.path, environment, folder, claimedFolder);
  const ids = (await listNames(claims)).filter((name) => uuid.test(name));
  const known = await openInboxFiles(context.db, ids);
  for (const fileId of ids.filter((id) => !known.has(id))) {
    for (const name of await listNames(join(claims, fileId))) {
      const claim = {
        fileId,
        environment,
        folder,
        name,
        hasMarker: false,
        inode: 0n,
        size: 0n,
        modifiedNs: 0n,
      };
      const { claimed, dropped } = claimPaths(inbox, claim);
      if (name.startsWith('.') || (await statOf(claimed))?.isFile() !== true) continue;
      const done = await putBack(inbox, claim);
      const what = done
        ? 'was put back'
        : 'stays where it is, since its place is taken: move it into the inbox by hand';
      context.log.warn(
        { path: done ? dropped : claimed },
        `inbox: a claimed file that the database does not know ${what}`,
      );
    }
  }
}

async function listNames(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return [];
    throw error;
  }
}
