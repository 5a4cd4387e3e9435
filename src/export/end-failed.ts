import { failExport } from '../postgres/ledger/export-claims.ts';
import type { ExportContext } from './context.ts';

/** Ends an export as failed. Does nothing if it has ended already. */
export async function endFailed(
  context: ExportContext,
  exportId: number,
  failure: { readonly code: string; readonly message: string },
): Promise<void> {
  const { code, message } = failure;
  const ended = await failExport(context.db, exportId, { code, message });
  if (ended === null) return;
  context.log.warn({ job_id: ended.jobId, code }, `export failed: ${message}`);
}
