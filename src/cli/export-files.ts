import { createWriteStream } from 'node:fs';
import { mkdir, rename, rm, rmdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Export } from '../domain/export.ts';
import { verifyExport } from '../export/verify-export.ts';
import { type FileRef, type FileStore, MissingFileError } from '../files/file-store.ts';
import { CommandFailed } from './errors.ts';

/** Puts the files of an export into a folder, which holds all of them, verified, or is not there. */
export async function saveFiles(
  files: FileStore,
  done: Export,
  folder: string,
  signal: AbortSignal,
): Promise<void> {
  const target = resolve(folder);
  const partial = `${target}.partial-${done.jobId}`;
  try {
    await mkdir(dirname(target), { recursive: true });
    await mkdir(partial);
    for (const { ref, filename } of done.files) {
      const copy = createWriteStream(join(partial, filename), { flags: 'wx', flush: true });
      await pipeline(files.open(ref as FileRef), copy, { signal });
    }
    await verify(partial);
    // One that is there and empty would be in the way on some systems.
    await rmdir(target).catch(() => undefined);
    await rename(partial, target);
  } catch (error) {
    await rm(partial, { recursive: true, force: true });
    if (error instanceof MissingFileError) throw elsewhere(done.jobId);
    throw error;
  }
}

async function verify(folder: string): Promise<void> {
  const { differences } = await verifyExport(folder);
  const [first] = differences;
  if (first === undefined) return;
  throw new CommandFailed(`The files came out damaged: ${first.filename ?? 'the export'} ${first.problem}.`);
}

function elsewhere(jobId: string): CommandFailed {
  return new CommandFailed(
    `The files of export ${jobId} are not here: the workers that run keep theirs elsewhere (DATA_DIR, STORAGE_URL).`,
  );
}
