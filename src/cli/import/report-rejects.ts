import { join } from 'node:path';
import type { System } from '../../context.ts';
import type { Load } from '../../domain/load.ts';
import type { Reject } from '../../domain/reject.ts';
import { countRejects } from '../../load/inspect-load.ts';
import { listRejects } from '../../load/inspect-rejects.ts';
import { formatOfRejects, writeRejectsFile } from './write-rejects.ts';

/** What there is to tell about the refused records of a load. */
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

/** Null if there is none. Writes `<file>.rejects.csv` or `.ndjson` into `folder`, for a dry run `<file>.rejects.dry-run.csv`. */
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
    const path = await writeRejectsFile(
      system,
      environmentId,
      jobId,
      format,
      join(folder, `${name}.rejects`),
      load.dryRun,
    );
    return { ...report, path, problem: null };
  } catch (error) {
    // The load is done, and the rejects are in the database: a folder that cannot be written changes neither.
    return { ...report, path: null, problem: error instanceof Error ? error.message : String(error) };
  }
}
