import { MAX_EXPORT_LOSSES, RECONCILE_MS } from '../domain/limits.ts';
import { findLeftovers, markFilesExpired, rescueExports } from '../postgres/ledger/due-exports.ts';
import { endSilentExportSessions } from '../postgres/ledger/sessions.ts';
import { type Poller, startPoller } from '../tasks/poller.ts';
import type { ExportContext } from './context.ts';
import { dispatchExports } from './dispatch-exports.ts';
import { endFailed } from './end-failed.ts';
import { exportFolder } from './folder.ts';

const leftoversPerRound = 20;

/**
 * Reads the ledger for exports that should be under way and are not, and files that nobody will ask for; rings for the former and removes the latter. Harmless to run anywhere, anytime, twice.
 */
export async function reconcileExports(context: ExportContext): Promise<void> {
  await rescue(context);
  await dispatchExports(context);
  await removeLeftovers(context);
}

async function rescue(context: ExportContext): Promise<void> {
  await endSilentExportSessions(context.db);
  for (const { exportId, jobId, losses } of await rescueExports(context.db)) {
    context.log.warn({ job_id: jobId, losses }, 'export taken back from a worker that went silent');
    if (losses < MAX_EXPORT_LOSSES) continue;
    const message = `the export lost its worker ${losses} times; it may be what kills it`;
    await endFailed(context, exportId, { code: 'worker_lost', message });
  }
}

async function removeLeftovers(context: ExportContext): Promise<void> {
  for (const { exportId, jobId } of await findLeftovers(context.db, leftoversPerRound)) {
    await context.files.removeFolder(exportFolder(jobId));
    await markFilesExpired(context.db, exportId);
  }
}

/** Reconciles at once and then every RECONCILE_MS; errors are logged and the next round tries again. */
export function startExportReconciler(context: ExportContext, everyMs = RECONCILE_MS): Poller {
  return startPoller(everyMs, async () => {
    await reconcileExports(context).catch((error: unknown) =>
      context.log.warn({ err: error }, 'reconciling exports failed; next round tries again'),
    );
  });
}
