import { inputError } from '../domain/errors.ts';
import { claimJobAction } from '../load/claim-job-action.ts';
import { ringForDeliveries } from '../notifications/record-end.ts';
import type { Database } from '../postgres/database.ts';
import { markExportCancelled } from '../postgres/ledger/export-claims.ts';
import { endExportSessions } from '../postgres/ledger/sessions.ts';
import { inTransaction } from '../postgres/transaction.ts';
import type { ExportContext } from './context.ts';
import { requireExport } from './inspect-exports.ts';
import { recordExportEnd } from './record-export-end.ts';

/**
 * Stops an export that has not ended, and its statement in Postgres with it. Returns when it was cancelled:
 * before now, if the same idempotency key asked before.
 * Throws `InputError`: `not_found`, `job_not_cancellable`, `idempotency_conflict`.
 */
export async function cancelExport(
  context: ExportContext,
  environmentId: number,
  jobId: string,
  idempotencyKey: string | null = null,
): Promise<Date> {
  const { at, exportId, due } = await inTransaction(context.pool, async ({ db }) => {
    const before = await claimJobAction(db, environmentId, 'cancel', jobId, idempotencyKey);
    if (before !== null) return { at: before, exportId: null, due: [] };
    const cancelled = await cancel(db, environmentId, jobId);
    return { ...cancelled, due: await recordExportEnd(context, db, environmentId, jobId) };
  });
  if (exportId === null) return at;
  context.log.info({ job_id: jobId }, 'export cancelled');
  // Otherwise the worker finds out within two seconds; if it is paused, the reconciler does.
  await endExportSessions(context.db, exportId).catch((error: unknown) =>
    context.log.warn({ err: error, job_id: jobId }, 'the session of a cancelled export is ended later'),
  );
  await ringForDeliveries(context, due);
  return at;
}

async function cancel(
  db: Database,
  environmentId: number,
  jobId: string,
): Promise<{ readonly at: Date; readonly exportId: number }> {
  const cancelled = await markExportCancelled(db, environmentId, jobId);
  if (cancelled === null) {
    const { status } = await requireExport({ db }, environmentId, jobId);
    throw inputError('job_not_cancellable', `the job is ${status} already`, `job_id: ${jobId}`);
  }
  return cancelled;
}
