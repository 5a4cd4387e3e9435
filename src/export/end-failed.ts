import { jobFields } from '../domain/job-fields.ts';
import { ringForDeliveries } from '../notifications/record-end.ts';
import { failExport } from '../postgres/ledger/export-claims.ts';
import { inTransaction } from '../postgres/transaction.ts';
import type { ExportContext } from './context.ts';
import { recordExportEnd } from './record-export-end.ts';

/** Ends an export as failed. Does nothing if it has ended already. */
export async function endFailed(
  context: ExportContext,
  exportId: number,
  failure: { readonly code: string; readonly message: string },
): Promise<void> {
  const { code, message } = failure;
  const ended = await inTransaction(context.pool, async ({ db }) => {
    const failed = await failExport(db, exportId, { code, message });
    if (failed === null) return null;
    return { ...failed, due: await recordExportEnd(context, db, failed.environmentId, failed.jobId) };
  });
  if (ended === null) return;
  context.log.warn({ ...jobFields(ended), code }, `export failed: ${message}`);
  await ringForDeliveries(context, ended.due);
}
