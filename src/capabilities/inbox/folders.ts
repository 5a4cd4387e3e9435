import { randomUUID } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import {
  constants,
  type FileHandle,
  link,
  lstat,
  mkdir,
  open,
  readdir,
  rename,
  rm,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import pLimit from 'p-limit';
import { TransientError } from '../../base/errors.ts';
import { codeOf } from '../../files/disk.ts';
import { classifyName, mappingName } from './context.ts';
import { type FileIdentity, type InboxFolder, isSameFile, type SeenFile } from './files.ts';

export async function statOf(path: string): Promise<BigIntStats | null> {
  try {
    return await lstat(path, { bigint: true });
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return null;
    throw error;
  }
}

export async function isFolder(path: string): Promise<boolean> {
  return (await statOf(path))?.isDirectory() === true;
}

export async function offerFolder(path: string): Promise<void> {
  await mkdir(path).catch((error: unknown) => {
    if (codeOf(error) !== 'EEXIST') throw error;
  });
}

/** @throws TransientError if the path exists and is not a folder, for example if it is a link */
export async function ensureFolder(path: string): Promise<void> {
  await offerFolder(path);
  if (!(await isFolder(path))) throw new TransientError(`${path} is in the way: it is no folder`);
}

interface FolderView {
  readonly files: readonly SeenFile[];
  readonly mapping: FileIdentity | null;
  readonly ignored: readonly { readonly name: string; readonly why: string }[];
}

const looksAtATime = 16;

export async function lookInto(path: string, folder: InboxFolder): Promise<FolderView> {
  const names = await readdir(path);
  const ignored: { name: string; why: string }[] = [];
  const atATime = pLimit(looksAtATime);
  const look = async (name: string): Promise<SeenFile[]> => {
    const kind = classifyName(name);
    const stats = kind === 'loadable' ? await statOf(join(path, name)) : null;
    const why = kind === 'unknown' ? unknownName : stats === null ? nameProblem(name) : problemOf(stats);
    if (why !== null) ignored.push({ name, why });
    return stats === null || why !== null ? [] : [{ folder, name, ...identify(stats) }];
  };
  const files = (await Promise.all(names.map((name) => atATime(look, name)))).flat();
  const mapping = names.includes(mappingName) ? await statOf(join(path, mappingName)) : null;
  return { files, mapping: mapping && identify(mapping), ignored };
}

export function identify({ ino, size, mtimeNs }: BigIntStats): FileIdentity {
  return { inode: ino, size, modifiedNs: mtimeNs };
}

const unknownName =
  'is left alone: files are taken by the names .csv, .ndjson, .jsonl, .json, .xlsx and .parquet, also with .gz behind, and .zip';

/** Through a link, people could load files that otherwise only the server can read. */
function problemOf(stats: BigIntStats): string | null {
  if (stats.isSymbolicLink()) return 'is left alone: it is a symbolic link; put the file itself here';
  if (!stats.isFile()) return 'is left alone: it is no regular file';
  return stats.nlink > 1n ? 'is left alone: it is a hard link; put a copy of the file here' : null;
}

/** Node replaces invalid UTF-8 in a name with this character. Such a name cannot be opened. */
function nameProblem(name: string): string | null {
  return name.includes('\uFFFD') ? 'is left alone: its name is not UTF-8; rename it' : null;
}

/** Opens a file for reading. Does not follow a link, nor wait for the writer of a pipe. */
export async function openPlain(path: string): Promise<FileHandle> {
  return open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
}

/** Returns `null` if the file was removed or changed since the scan. */
export async function openSeen(path: string, seen: FileIdentity): Promise<FileHandle | 'unreadable' | null> {
  try {
    const handle = await openPlain(path);
    if (await isUnchanged(handle, seen)) return handle;
    await handle.close();
    return null;
  } catch (error) {
    const code = codeOf(error) ?? '';
    if (['EACCES', 'EPERM'].includes(code)) return 'unreadable';
    if (['ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO', 'EISDIR'].includes(code)) return null;
    throw new TransientError(`opening a file: ${String(error)}`, { cause: error });
  }
}

/** True if the file has not changed since the scan and has no second name (hard link). */
export async function isUnchanged(handle: FileHandle, seen: FileIdentity): Promise<boolean> {
  const stats = await handle.stat({ bigint: true });
  return problemOf(stats) === null && isSameFile(identify(stats), seen);
}

export interface Moment {
  /** Time by a clock that starts at an arbitrary point and is never set back. */
  readonly monotonicMs: number;
  readonly wallMs: number;
}

interface History {
  readonly identity: FileIdentity;
  readonly sinceMs: number;
  readonly looks: number;
}

/**
 * A file is complete if it was unchanged for `stableMs` and in at least two scans. If a file was
 * last changed more than `stableMs` before the first scan, two scans are sufficient.
 */
export class StableFiles {
  readonly #stableMs: number;
  #histories = new Map<string, History>();

  constructor(stableMs: number) {
    this.#stableMs = stableMs;
  }

  /**
   * Returns the complete files, sorted by the time of their last change, then by name. Files after
   * the first incomplete file are not returned, so that no file overtakes an earlier one.
   */
  look<F extends SeenFile>(files: readonly F[], now: Moment): F[] {
    const histories = new Map<string, History>();
    for (const file of files) {
      const before = this.#histories.get(placeOf(file));
      const isSame = before !== undefined && isSameFile(before.identity, file);
      histories.set(
        placeOf(file),
        isSame
          ? { ...before, looks: before.looks + 1 }
          : { identity: file, sinceMs: now.monotonicMs, looks: 1 },
      );
    }
    this.#histories = histories;
    const ordered = files.toSorted(byArrival);
    const end = ordered.findIndex((file) => !this.#isComplete(histories.get(placeOf(file)), now));
    return end < 0 ? ordered : ordered.slice(0, end);
  }

  #isComplete(history: History | undefined, now: Moment): boolean {
    if (history === undefined || history.looks < 2) return false;
    const untouchedMs = now.wallMs - Number(history.identity.modifiedNs / 1_000_000n);
    return now.monotonicMs - history.sinceMs >= this.#stableMs || untouchedMs >= this.#stableMs;
  }
}

export function placeOf({ folder, name }: Pick<SeenFile, 'folder' | 'name'>): string {
  return folder === '' ? name : `${folder}/${name}`;
}

function byArrival(a: SeenFile, b: SeenFile): number {
  if (a.modifiedNs !== b.modifiedNs) return a.modifiedNs < b.modifiedNs ? -1 : 1;
  if (a.name !== b.name) return a.name < b.name ? -1 : 1;
  return a.folder < b.folder ? -1 : 1;
}

/**
 * Moves a file by linking the new name and then removing the old name. Throws EEXIST if the new
 * name belongs to another file. If the file system does not support links, a rename may overwrite a
 * file that has just appeared. If the process dies before it removes the old name, the next attempt
 * removes it.
 */
export async function moveWithoutOverwriting(from: string, to: string): Promise<void> {
  try {
    await link(from, to).catch(async (error: unknown) => {
      if (codeOf(error) !== 'EEXIST' || !(await areOneFile(from, to))) throw error;
    });
  } catch (error) {
    const code = codeOf(error);
    if (code !== 'EPERM' && code !== 'ENOTSUP') throw error;
    return rename(from, to);
  }
  await rm(from);
}

async function areOneFile(one: string, other: string): Promise<boolean> {
  const [a, b] = await Promise.all([statOf(one), statOf(other)]);
  return a !== null && b !== null && a.dev === b.dev && a.ino === b.ino;
}

/**
 * Writes a file, or replaces an existing one. The file appears only when it is complete and on
 * disk.
 */
export async function writeWhole(
  folder: string,
  name: string,
  content: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): Promise<void> {
  const draft = join(folder, `.${randomUUID()}.draft`);
  try {
    await writeFile(draft, content, { flag: 'wx', mode: 0o644, flush: true });
    await rename(draft, join(folder, name));
  } catch (error) {
    await rm(draft, { force: true }).catch(() => undefined);
    throw error;
  }
}
