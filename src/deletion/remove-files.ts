import { exportFolder } from '../export/folder.ts';
import { findKeptFiles, forgetFiles } from '../postgres/deletion/earlier-loads.ts';
import { findKeptExports, restartExports } from '../postgres/deletion/kept-exports.ts';
import { markFilesExpired } from '../postgres/stores/exports.ts';
import type { Attempt } from './context.ts';

const filesAtATime = 20;

/**
 * Removes the files kept of earlier loads, whoever's records they hold: to find out would be to read them all. They are
 * only kept for a retry, which after this deletion must not be.
 */
export async function removeKeptFiles({ context, deletion, step }: Attempt): Promise<void> {
  for (;;) {
    const kept = await findKeptFiles(context.db, deletion.deletionId, filesAtATime);
    if (kept.length === 0) return;
    for (const { ref } of kept) await context.files.remove(ref);
    await step(async (db) => {
      await forgetFiles(
        db,
        kept.map(({ loadId }) => loadId),
      );
      return { files: kept.length };
    });
  }
}

/** Removes the files of the environment's exports, and lets those under way begin anew. */
export async function removeExports({ context, deletion, step }: Attempt): Promise<void> {
  const moment = await restartExports(context.db, deletion.environmentId);
  for (;;) {
    const kept = await findKeptExports(context.db, deletion.environmentId, moment, filesAtATime);
    if (kept.length === 0) return;
    for (const { jobId } of kept) await context.files.removeFolder(exportFolder(jobId));
    await step(async (db) => {
      for (const { exportId } of kept) await markFilesExpired(db, exportId);
      return { exports: kept.length };
    });
  }
}
