// The files of a move: from the folder that they are in, under the same names, to another folder or to S3.
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import pLimit from 'p-limit';
import { Fault } from '../domain/errors.ts';
import { MOVE_FILES_AT_A_TIME } from '../domain/limits.ts';
import { codeOf } from '../files/disk.ts';
import { type FileRef, type FileStore, isRef } from '../files/file-store.ts';

export interface MovedFiles {
  readonly files: number;
  readonly bytes: number;
  /** Of these, those that were there already. */
  readonly earlier: number;
}

/**
 * Copies what the target does not have in the same length; each file appears there whole or not at all. What was never
 * completed is left behind.
 */
export async function copyFiles(
  folder: string,
  from: FileStore,
  to: FileStore,
  onFile: (moved: MovedFiles) => void,
  signal: AbortSignal,
): Promise<MovedFiles> {
  const moved = { files: 0, bytes: 0, earlier: 0 };
  const limit = pLimit(MOVE_FILES_AT_A_TIME);
  const failure = new AbortController();
  const stop = AbortSignal.any([signal, failure.signal]);
  const move = async (ref: FileRef): Promise<void> => {
    stop.throwIfAborted();
    const bytes = (await stat(join(folder, ref))).size;
    if ((await to.size(ref)) === bytes) moved.earlier++;
    else await copyFile(from, to, ref, stop);
    moved.files++;
    moved.bytes += bytes;
    onFile(moved);
  };
  for (const refs of await listRefs(folder)) {
    const copies = refs.map((ref) => limit(() => move(ref)));
    try {
      await Promise.all(copies);
    } catch (error) {
      // The others end before the caller hears of it.
      failure.abort(error);
      await Promise.allSettled(copies);
      throw error;
    }
  }
  return moved;
}

/** What there is to copy. */
export async function measureFiles(folder: string): Promise<Omit<MovedFiles, 'earlier'>> {
  let [files, bytes] = [0, 0];
  for (const refs of await listRefs(folder)) {
    for (const ref of refs) {
      files++;
      bytes += (await stat(join(folder, ref))).size;
    }
  }
  return { files, bytes };
}

async function copyFile(from: FileStore, to: FileStore, ref: FileRef, signal: AbortSignal): Promise<void> {
  const writer = await to.createAs(ref);
  let bytes = 0;
  try {
    for await (const chunk of from.open(ref) as AsyncIterable<Buffer>) {
      signal.throwIfAborted();
      bytes += chunk.length;
      await writer.write(chunk);
    }
    await writer.commit();
  } catch (error) {
    await writer.discard();
    throw error;
  }
  const there = await to.size(ref);
  if (there !== bytes) throw new Fault(`the file ${ref} has ${there} bytes in the target, not ${bytes}`);
}

/** The files of each folder at the top: days, and kinds of files that go together. */
async function listRefs(folder: string): Promise<readonly FileRef[][]> {
  const names = await readdir(folder).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return [];
    throw error;
  });
  const listed: FileRef[][] = [];
  for (const name of names.sort()) {
    const entries = await readdir(join(folder, name), { recursive: true }).catch((error: unknown) => {
      if (codeOf(error) === 'ENOTDIR') return [];
      throw error;
    });
    const refs = entries.map((entry) => `${name}/${entry.replaceAll('\\', '/')}`).filter(isRef);
    if (refs.length > 0) listed.push(refs);
  }
  return listed;
}
