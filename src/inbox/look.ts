import type { BigIntStats } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import pLimit from 'p-limit';
import type { FileIdentity } from '../domain/inbox.ts';
import { codeOf } from '../files/disk.ts';
import type { DropFolder } from './context.ts';
import { judgeName, mappingName, markerSuffix } from './names.ts';

/** A file that may be taken once it is complete. */
export interface Seen extends FileIdentity {
  readonly name: string;
  /** Somebody said that it is complete, after it was last touched. */
  readonly marked: boolean;
}

/** What lies in a folder. */
export interface FolderView {
  readonly files: readonly Seen[];
  readonly mapping: FileIdentity | null;
  /** What is left alone, and why: a sentence for the log. */
  readonly remarks: readonly { readonly name: string; readonly why: string }[];
}

const looksAtATime = 16;

/** One look at a folder: its names, and one call for each that may be taken. */
export async function lookInto(folder: DropFolder): Promise<FolderView> {
  const names = await readdir(folder.path);
  const present = new Set(names);
  const remarks: { name: string; why: string }[] = [];
  const atATime = pLimit(looksAtATime);
  const seen = await Promise.all(
    names.map(async (name): Promise<Seen | null> => {
      const judgement = judgeName(name);
      if (judgement === 'unknown') remarks.push({ name, why: unknownName(name) });
      if (judgement !== 'loadable') return null;
      const stats = await atATime(() => look(folder, name));
      const why = stats === null ? nameProblem(name) : problem(stats, folder);
      if (why !== null) remarks.push({ name, why });
      if (stats === null || why !== null) return null;
      const marked = present.has(name + markerSuffix) && (await atATime(() => isMarked(folder, name, stats)));
      return { name, marked, ...identify(stats) };
    }),
  );
  const mapping = present.has(mappingName) ? await look(folder, mappingName) : null;
  return {
    files: seen.filter((each) => each !== null),
    mapping: mapping === null ? null : identify(mapping),
    remarks,
  };
}

export function identify({ ino, size, mtimeNs }: BigIntStats): FileIdentity {
  return { inode: ino, size, modifiedNs: mtimeNs };
}

/** Null if it is not there (any more). */
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
  if (/\.(?:xlsx?|xlsm|xlsb|ods|numbers)(?:\.gz)?$/i.test(name))
    return 'is left alone: it is a spreadsheet; save it as CSV';
  if (/\.(?:zip|7z|rar|t?bz2?|t?xz|zst|tar|tgz|tar\.gz)$/i.test(name))
    return 'is left alone: it is an archive; put what is in it here, plain or as .gz';
  return 'is left alone: files are taken by the names .csv, .ndjson, .jsonl and .json, also with .gz behind';
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
