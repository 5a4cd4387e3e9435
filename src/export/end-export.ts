import { Fault, inputError } from '../domain/errors.ts';
import { endedStatuses } from '../domain/load.ts';
import { type DueTask, jobFields, type TaskFailure } from '../domain/task.ts';
import { recordEnd } from '../notifications/record-end.ts';
import { type Database, inTransaction } from '../postgres/database.ts';
import {
  cancelExport as markCancelled,
  failExport as markFailed,
  readExportEnd,
} from '../postgres/stores/exports.ts';
import { claimJobAction } from '../postgres/stores/idempotency.ts';
import { endTaskSessions } from '../postgres/stores/workers.ts';
import { notifyQueue } from '../tasks/task-kind.ts';
import type { ExportContext } from './context.ts';
import { renderExportDetail, requireExport } from './inspect-exports.ts';

/** Ends an export as failed. Does nothing if it has ended already. */
export async function failExport(
  context: ExportContext,
  exportId: number,
  { code, message }: TaskFailure,
): Promise<void> {
  const ended = await inTransaction(context.pool, async ({ db }) => {
    const failed = await markFailed(db, exportId, { code, message });
    return (
      failed && { ...failed, due: await recordExportEnd(context, db, failed.environmentId, failed.jobId) }
    );
  });
  if (ended === null) return;
  context.log.warn({ ...jobFields(ended), code }, `export failed: ${message}`);
  await notifyQueue(context, ended.due);
}

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
  const { at, taskId, due } = await inTransaction(context.pool, async ({ db }) => {
    const before = await claimJobAction(db, environmentId, 'cancel', jobId, idempotencyKey);
    if (before !== null) return { at: before, taskId: null, due: null };
    const cancelled = await markCancelled(db, environmentId, jobId);
    if (cancelled === null) throw await notCancellable(db, environmentId, jobId);
    return { ...cancelled, due: await recordExportEnd(context, db, environmentId, jobId) };
  });
  if (due === null) return at;
  context.log.info({ job_id: jobId }, 'export cancelled');
  // Otherwise the worker finds out within two seconds; if it is paused, the reconciler does.
  if (taskId !== null) {
    await endTaskSessions(context.db, { kind: 'export', taskId }).catch((error: unknown) =>
      context.log.warn({ err: error, job_id: jobId }, 'the session of a cancelled export is ended later'),
    );
  }
  await notifyQueue(context, due);
  return at;
}

async function notCancellable(db: Database, environmentId: number, jobId: string): Promise<Error> {
  const { status } = await requireExport({ db }, environmentId, jobId);
  return inputError('job_not_cancellable', `the job is ${status} already`, `job_id: ${jobId}`);
}

/** Writes the event of an export's end; call it in the transaction that ends it. See `recordEnd`. */
export async function recordExportEnd(
  { baseUrl }: Pick<ExportContext, 'baseUrl'>,
  db: Database,
  environmentId: number,
  jobId: string,
): Promise<DueTask[]> {
  const row = await readExportEnd(db, environmentId, jobId);
  const status = endedStatuses.find((ended) => ended === row.status);
  if (status === undefined) throw new Fault(`export ${jobId} is ${row.status} and has not ended`);
  return recordEnd(db, {
    kind: 'export',
    environmentId,
    jobId,
    outcome: status,
    // Whoever cancels knows.
    emails: status === 'cancelled' ? [] : row.emails,
    describe: async () => renderExportDetail(await requireExport({ db }, environmentId, jobId), baseUrl),
  });
}
