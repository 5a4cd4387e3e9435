import { randomUUID } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import { lstat, mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import pLimit from 'p-limit';
import { TransientError } from '../../domain/errors.ts';
import { type FileIdentity, type InboxFolder, isSameFile } from '../../domain/inbox.ts';
import { codeOf } from '../../files/disk.ts';
import { classifyName, type DropFolder, mappingName, markerSuffix } from './inbox.ts';

/** Returns null unless it is there and a folder, and not a symbolic link to one. */
export async function findFolder(path: string): Promise<DropFolder | null> {
  try {
    const { dev, isDirectory } = await statOf(path);
    return isDirectory ? { path, device: dev } : null;
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return null;
    throw error;
  }
}

/** Returns true if something is there that is no folder: a file, or a symbolic link. */
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

async function statOf(path: string): Promise<{ dev: bigint; isDirectory: boolean }> {
  const stats = await lstat(path, { bigint: true });
  return { dev: stats.dev, isDirectory: stats.isDirectory() };
}

/** A file that may be taken once it is complete. */
interface Seen extends FileIdentity {
  readonly name: string;
  /** Somebody said that it is complete, after it was last touched. */
  readonly marked: boolean;
}

interface FolderView {
  readonly files: readonly Seen[];
  readonly mapping: FileIdentity | null;
  /** Files that are left alone, with a sentence for the log. */
  readonly ignored: readonly { readonly name: string; readonly why: string }[];
}

const looksAtATime = 16;

/** Lists a folder, with one call for each file that may be taken. */
export async function lookInto(folder: DropFolder): Promise<FolderView> {
  const names = await readdir(folder.path);
  const present = new Set(names);
  const ignored: { name: string; why: string }[] = [];
  const atATime = pLimit(looksAtATime);
  const seen = await Promise.all(
    names.map(async (name): Promise<Seen | null> => {
      const kind = classifyName(name);
      if (kind === 'unknown') ignored.push({ name, why: unknownName(name) });
      if (kind !== 'loadable') return null;
      const stats = await atATime(() => look(folder, name));
      const why = stats === null ? nameProblem(name) : problem(stats, folder);
      if (why !== null) ignored.push({ name, why });
      if (stats === null || why !== null) return null;
      const marked = present.has(name + markerSuffix) && (await atATime(() => isMarked(folder, name, stats)));
      return { name, marked, ...identify(stats) };
    }),
  );
  const mapping = present.has(mappingName) ? await look(folder, mappingName) : null;
  return {
    files: seen.filter((each) => each !== null),
    mapping: mapping === null ? null : identify(mapping),
    ignored,
  };
}

export function identify({ ino, size, mtimeNs }: BigIntStats): FileIdentity {
  return { inode: ino, size, modifiedNs: mtimeNs };
}

/** Returns null if it is not there (any more). */
async function look({ path }: DropFolder, name: string): Promise<BigIntStats | null> {
  try {
    return await lstat(join(path, name), { bigint: true });
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null;
    throw error;
  }
}

/**
 * A marker counts if it came after the last touch of the file. One that was left lying, say because its file was taken
 * before it came, would otherwise mark the next file of that name while it is being written. These are times of change,
 * which no program that copies files can set.
 */
async function isMarked(folder: DropFolder, name: string, file: BigIntStats): Promise<boolean> {
  const marker = await look(folder, name + markerSuffix);
  return marker?.isFile() === true && marker.ctimeNs >= file.ctimeNs;
}

/** Whoever may write here could so have any file loaded that we can read and they cannot. */
export function hasOtherNames({ nlink }: BigIntStats): boolean {
  return nlink > 1n;
}

function unknownName(name: string): string {
  if (/\.(?:xls|xlsb|ods|numbers)(?:\.gz)?$/i.test(name))
    return 'is left alone: it is a spreadsheet; save it as .xlsx or CSV';
  if (/\.(?:7z|rar|t?bz2?|t?xz|zst|tar|tgz|tar\.gz)$/i.test(name))
    return 'is left alone: it is an archive; put what is in it here, plain, as .gz or as .zip';
  return 'is left alone: files are taken by the names .csv, .ndjson, .jsonl, .json, .xlsx, .parquet and .avro, also with .gz behind, and .zip';
}

function problem(stats: BigIntStats, folder: DropFolder): string | null {
  if (stats.isSymbolicLink()) return 'is left alone: it is a symbolic link; put the file itself here';
  if (!stats.isFile()) return 'is left alone: it is no regular file';
  if (hasOtherNames(stats)) return 'is left alone: it is a hard link; put a copy of the file here';
  return stats.dev === folder.device ? null : 'is left alone: it lies on another file system';
}

/** Names that are no UTF-8 are read with this character instead, and then not found. */
function nameProblem(name: string): string | null {
  return name.includes('\uFFFD') ? 'is left alone: its name is not UTF-8; rename it' : null;
}

/** A file, and the folder of the environment that it lies in. */
export interface SeenFile extends Seen {
  readonly folder: InboxFolder;
}

/** When a look was made. */
export interface Moment {
  /** From any origin, never set back. */
  readonly monotonicMs: number;
  /** Since 1970. */
  readonly wallMs: number;
}

interface History {
  readonly identity: FileIdentity;
  readonly sinceMs: number;
  readonly looks: number;
}

/**
 * Tells which files of an environment are complete: those that did not change over `stableMs` and two looks at least.
 * Of those whose time of change is that old already, when they are first seen, two looks are enough.
 */
export class StableFiles {
  readonly #stableMs: number;
  #histories = new Map<string, History>();

  constructor(stableMs: number) {
    this.#stableMs = stableMs;
  }

  /**
   * Takes in what a look saw, all of it; what is missing is forgotten. Gives the files to take, in order of arrival: by
   * the time of their last change, then by name. A complete file waits for an earlier one that is not: that one either
   * becomes complete, or changes and is the later one.
   */
  look(files: readonly SeenFile[], now: Moment): SeenFile[] {
    const histories = new Map<string, History>();
    for (const file of files) {
      const key = `${file.folder}/${file.name}`;
      const before = this.#histories.get(key);
      const same = before !== undefined && isSameFile(before.identity, file);
      histories.set(key, {
        identity: same ? before.identity : identityOf(file),
        sinceMs: same ? before.sinceMs : now.monotonicMs,
        looks: same ? before.looks + 1 : 1,
      });
    }
    this.#histories = histories;
    const ordered = files.toSorted(byArrival);
    const end = ordered.findIndex((file) => !this.#isComplete(file, now));
    return end < 0 ? ordered : ordered.slice(0, end);
  }

  #isComplete(file: SeenFile, now: Moment): boolean {
    if (file.marked) return true;
    const history = this.#histories.get(`${file.folder}/${file.name}`);
    return history !== undefined && isStable(history, now, this.#stableMs);
  }
}

function isStable({ identity, sinceMs, looks }: History, now: Moment, stableMs: number): boolean {
  if (looks < 2) return false;
  const untouchedMs = now.wallMs - Number(identity.modifiedNs / 1_000_000n);
  return now.monotonicMs - sinceMs >= stableMs || untouchedMs >= stableMs;
}

function identityOf({ inode, size, modifiedNs }: FileIdentity): FileIdentity {
  return { inode, size, modifiedNs };
}

function byArrival(a: SeenFile, b: SeenFile): number {
  if (a.modifiedNs !== b.modifiedNs) return a.modifiedNs < b.modifiedNs ? -1 : 1;
  if (a.name !== b.name) return a.name < b.name ? -1 : 1;
  return a.folder < b.folder ? -1 : 1;
}

/**
 * Writes a file that appears whole, with its bytes on disk; replaces what was there under that name. `draftFolder` is
 * where it is written first: on the same file system.
 */
export async function writeWhole(
  folder: string,
  name: string,
  content: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  draftFolder = folder,
): Promise<void> {
  const draft = join(draftFolder, `.${randomUUID()}.draft`);
  try {
    const file = await open(draft, 'wx', 0o644);
    try {
      for await (const bytes of content) await file.appendFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, join(folder, name));
  } catch (error) {
    await rm(draft, { force: true }).catch(() => undefined);
    throw error;
  }
}
