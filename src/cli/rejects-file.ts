/** The refused records of a load, as a file to be mended and imported again. */
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import type { System } from '../context.ts';
import type { Load } from '../domain/load.ts';
import type { Reject } from '../domain/reject.ts';
import { exportRejects, listRejects, type RejectsFormat } from '../load/rejects.ts';
import { countRejects } from '../postgres/stores/read-loads.ts';
import { readRejectsSource } from '../postgres/stores/rejects.ts';

/** The refused records of a load, and where they were written to. */
export interface RejectsReport {
  readonly count: number;
  readonly byCode: Readonly<Record<string, number>>;
  readonly first: readonly Reject[];
  /** Where they were written to, to be mended; null if that did not work. */
  readonly path: string | null;
  /** Why not. */
  readonly problem: string | null;
}

const shown = 5;
const mostFiles = 1_000;

/**
 * Writes all rejects to `<file>.rejects.<format>`, or `<file>.rejects-2.<format>` and so on: a file that is there may be half
 * mended already. Those of a dry run are there to be looked at: `<file>.rejects.dry-run.<format>` replaces the one before.
 * Null if there are none.
 */
export async function reportRejects(
  system: System,
  environmentId: number,
  load: Load,
  folder: string,
): Promise<RejectsReport | null> {
  const { jobId } = load;
  const { rejects, total } = await listRejects(system, environmentId, jobId, { limit: shown, after: 0 });
  if (rejects.length === 0) return null;
  const report = { count: total, byCode: await countRejects(system, environmentId, jobId), first: rejects };
  try {
    const format = await formatOfRejects(system, environmentId, jobId);
    const name = load.filename.replace(/\.gz$/i, '').replace(/\.[a-z]+$/i, '');
    const stem = join(folder, `${name}.rejects`);
    const { path, file } = load.dryRun
      ? await replace(`${stem}.dry-run.${format}`)
      : await openNew(stem, format);
    try {
      for await (const bytes of exportRejects(system, environmentId, jobId, format))
        await file.appendFile(bytes);
    } finally {
      await file.close();
    }
    return { ...report, path, problem: null };
  } catch (error) {
    // The load is done, and the rejects are in the database: a folder that cannot be written changes neither.
    return { ...report, path: null, problem: error instanceof Error ? error.message : String(error) };
  }
}

/** The format of the file they came from. */
export async function formatOfRejects(
  { db }: Pick<System, 'db'>,
  environmentId: number,
  jobId: string,
): Promise<RejectsFormat> {
  const source = await readRejectsSource(db, environmentId, jobId);
  return source !== null && source.header === null ? 'ndjson' : 'csv';
}

async function replace(path: string): Promise<{ path: string; file: FileHandle }> {
  return { path, file: await open(path, 'w') };
}

async function openNew(stem: string, extension: string): Promise<{ path: string; file: FileHandle }> {
  for (let number = 1; ; number++) {
    const path = `${stem}${number === 1 ? '' : `-${number}`}.${extension}`;
    try {
      return { path, file: await open(path, 'wx') };
    } catch (error) {
      const taken = error instanceof Error && 'code' in error && error.code === 'EEXIST';
      if (!taken || number >= mostFiles) throw error;
    }
  }
}
