import { deleteExports, findExpired, findLeftovers, markFilesExpired } from '../postgres/stores/exports.ts';
import type { ExportContext } from './context.ts';
import { exportFolder } from './folder.ts';

export interface ExportRetention {
  /** Days that files are kept after their export ended. */
  readonly exportDays: number;
  /** Days that job records are kept after the export ended. */
  readonly jobDays: number;
}

const exportsPerRound = 500;

/** Removes what has outlived its retention: the files of exports first, their records later. */
export async function pruneExports(
  { db, files }: Pick<ExportContext, 'db' | 'files'>,
  { exportDays, jobDays }: ExportRetention,
): Promise<{ exports: number; records: number }> {
  let exports = 0;
  for (let removed = exportsPerRound; removed === exportsPerRound; exports += removed) {
    const expired = await findExpired(db, exportDays, exportsPerRound);
    for (const { exportId, jobId } of expired) {
      // The whole folder: with it goes whatever an attempt that was lost may have left.
      await files.removeFolder(exportFolder(jobId));
      await markFilesExpired(db, exportId);
    }
    removed = expired.length;
  }
  return { exports, records: await deleteExports(db, jobDays) };
}

const leftoversAtATime = 20;

/** Removes what failed and cancelled exports have left: nobody will ask for it. */
export async function removeLeftovers({ db, files }: Pick<ExportContext, 'db' | 'files'>): Promise<void> {
  for (const { exportId, jobId } of await findLeftovers(db, leftoversAtATime)) {
    await files.removeFolder(exportFolder(jobId));
    await markFilesExpired(db, exportId);
  }
}
