import { inputError } from '../domain/errors.ts';
import { claimJobAction } from '../load/claim-job-action.ts';
import { ringForDeliveries } from '../notifications/record-end.ts';
import type { Database } from '../postgres/database.ts';
import { markExportCancelled } from '../postgres/ledger/export-claims.ts';
import { inTransaction } from '../postgres/transaction.ts';
import type { ExportContext } from './context.ts';
import { requireExport } from './inspect-exports.ts';
import { recordExportEnd } from './record-export-end.ts';

/**
 * Stops an export that has not ended; a worker that is at it finds out within two seconds. Returns when it was cancelled:
 * before now, if the same idempotency key asked before.
 * Throws `InputError`: `not_found`, `job_not_cancellable`, `idempotency_conflict`.
 */
export async function cancelExport(
  context: ExportContext,
  environmentId: number,
  jobId: string,
  idempotencyKey: string | null = null,
): Promise<Date> {
  const { at, due } = await inTransaction(context.pool, async ({ db }) => {
    const before = await claimJobAction(db, environmentId, 'cancel', jobId, idempotencyKey);
    if (before !== null) return { at: before, due: [] };
    const cancelledAt = await cancel(context, db, environmentId, jobId);
    return { at: cancelledAt, due: await recordExportEnd(context, db, environmentId, jobId) };
  });
  await ringForDeliveries(context, due);
  return at;
}

async function cancel(
  context: ExportContext,
  db: Database,
  environmentId: number,
  jobId: string,
): Promise<Date> {
  const cancelled = await markExportCancelled(db, environmentId, jobId);
  if (cancelled === null) {
    const { status } = await requireExport({ db }, environmentId, jobId);
    throw inputError('job_not_cancellable', `the job is ${status} already`, `job_id: ${jobId}`);
  }
  context.log.info({ job_id: jobId }, 'export cancelled');
  return cancelled.at;
}
