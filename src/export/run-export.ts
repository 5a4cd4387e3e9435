import { ConflictError, Fault, FinalFailure, inputError } from '../base/errors.ts';
import { GiB, HEARTBEAT_MS } from '../base/limits.ts';
import { keepAlive } from '../base/timers.ts';
import { plural } from '../base/wording.ts';
import type { ExportWarning } from '../domain/export.ts';
import { endedStatuses } from '../domain/load.ts';
import { type DueTask, jobFields, type TaskClaim, type TaskFailure, taskFields } from '../domain/task.ts';
import { countAwaitedLoads } from '../load/read-store.ts';
import { findCursorProblem } from '../postgres/change-log.ts';
import { type Database, inTransaction } from '../postgres/database.ts';
import { analyzeStale } from '../postgres/migrate.ts';
import { claimJobAction } from '../tasks/idempotency.ts';
import { readJobHistory } from '../tasks/job-store.ts';
import { endTask, holdTask, LostClaim, releaseTask } from '../tasks/store.ts';
import { notifyQueue } from '../tasks/task-kind.ts';
import { endTaskSessions, inTaskTransaction, taskSessionName } from '../tasks/worker-store.ts';
import { attemptFolder, type ExportContext } from './context.ts';
import { cursorExpired } from './filter.ts';
import { renderExportDetail, requireExport } from './inspect-exports.ts';
import {
  beginExport,
  completeExport,
  type ExportWork,
  cancelExport as markCancelled,
  failExport as markFailed,
  readExportEnd,
  recordProgress,
} from './store.ts';
import type { WrittenExport } from './write/write-export.ts';

/** When a stored file reaches this size, the rows continue in another file. */
export const EXPORT_PART_BYTES = GiB;

/**
 * All rows come from one snapshot. The list of files and the end of the export are recorded in one
 * transaction, so an export that is completed has all rows.
 */
export async function runExport(
  context: ExportContext,
  claim: TaskClaim,
  signal: AbortSignal,
): Promise<void> {
  if (await waitsForLoads(context, claim)) return;
  const work = await beginExport(context.db, claim);
  if (work === null) throw new LostClaim();
  const late = AbortSignal.timeout(context.exportTimeoutMs);
  let isCommitting = false;
  try {
    // Workers of earlier attempts are dead or paused. If a paused worker resumes, it removes its
    // own files.
    for (let earlier = 1; work.wasBegun && earlier < claim.attempt; earlier++)
      await removeAttempt(context, work.jobId, earlier);
    const written = await writeFiles(context, claim, work, AbortSignal.any([signal, late]));
    late.throwIfAborted();
    signal.throwIfAborted();
    isCommitting = true;
    await complete(context, claim, work, written);
  } catch (error) {
    // If no response to the commit arrives, the commit may have succeeded, so the files are kept.
    // If it failed, the next attempt removes them.
    if (!isCommitting || error instanceof ConflictError)
      await removeAttempt(context, work.jobId, claim.attempt);
    throw late.aborted ? tookTooLong(context.exportTimeoutMs) : error;
  }
}

const loadsPauseMs = 2_000;

/**
 * Returns true if the export must wait for loads. The task is then put back into the queue, with a
 * message that names the reason.
 */
async function waitsForLoads({ db }: ExportContext, claim: TaskClaim): Promise<boolean> {
  const loads = await countAwaitedLoads(db, claim);
  if (loads === 0) return false;
  const message = `Waits for ${plural(loads, 'load')} that ${loads === 1 ? 'was' : 'were'} accepted before it`;
  await releaseTask(db, claim, { message, pauseMs: loadsPauseMs, counts: false });
  return true;
}

/** Records the progress with each heartbeat, at most once in two seconds. */
async function writeFiles(
  context: ExportContext,
  claim: TaskClaim,
  work: ExportWork,
  signal: AbortSignal,
): Promise<WrittenExport> {
  const { db, pool, files, log, exportOptions } = context;
  const { jobId, environmentId, environmentName, appToken, request } = work;
  const folder = attemptFolder(jobId, claim.attempt);
  const history = await readJobHistory(db, environmentId, jobId);
  const users = await exportOptions.selectUsers(db, environmentId, request);
  if (users.segment !== null || users.excludedSegments.length > 0) await analyzeStale(db, log);
  const progress = { rowsExpected: null as number | null, rowsWritten: 0, bytesWritten: 0 };
  const beat = keepAlive(HEARTBEAT_MS, () => recordProgress(db, claim, progress));
  const fields = jobFields({ jobId, requestId: claim.requestId });
  const create = () => files.create(folder);
  try {
    return await context.writeExport(
      { pool, log: log.child(fields), files: { ...files, create } },
      {
        environmentId,
        request,
        ...users,
        manifest: { jobId, environmentName, appToken, history },
        sessionName: taskSessionName(claim),
        signal,
        splitBytes: EXPORT_PART_BYTES,
        onProgress(rows, bytes) {
          progress.rowsWritten = rows;
          progress.bytesWritten = bytes;
        },
        onSnapshot({ rowsExpected }) {
          progress.rowsExpected = Math.max(0, Math.round(rowsExpected));
        },
      },
    );
  } finally {
    beat.stop();
  }
}

/** The commit waits for the disk, so that a crash cannot lose the record of the files. */
async function complete(
  context: ExportContext,
  claim: TaskClaim,
  { environmentId, jobId, request }: ExportWork,
  written: WrittenExport,
): Promise<void> {
  const due = await inTaskTransaction(context.pool, claim, async ({ db }) => {
    await holdTask(db, claim);
    // The export is complete only if the change log still contains all changes since the cursor.
    if ((await findCursorProblem(db, request)) !== null)
      throw new FinalFailure('cursor_expired', cursorExpired);
    const warnings = warnOfLoads(written.unfinishedLoads);
    await completeExport(db, claim.subjectId, { ...written, warnings });
    const tasks = await recordExportEnd(context, db, environmentId, jobId);
    await endTask(db, claim);
    return tasks;
  });
  context.log.info({ ...taskFields(claim), files: written.files.length }, 'export completed');
  await notifyQueue(context, due);
}

const namedLoads = 10;

function warnOfLoads(jobIds: readonly string[]): ExportWarning[] {
  if (jobIds.length === 0) return [];
  const message = `${plural(jobIds.length, 'load')} had been accepted and had not ended, so that the files may hold part of what ${jobIds.length === 1 ? 'it changes' : 'they change'}; wait_for_loads=true waits`;
  const rest = jobIds.length > namedLoads ? ` and ${plural(jobIds.length - namedLoads, 'more', 'more')}` : '';
  return [{ message, details: `job_ids: ${jobIds.slice(0, namedLoads).join(', ')}${rest}` }];
}

/** This error is final, because another attempt would take equally long and delay other exports. */
function tookTooLong(timeoutMs: number): FinalFailure {
  const hours = Math.round(timeoutMs / 3_600_000);
  return new FinalFailure(
    'export_timeout',
    `The export took longer than ${hours} hours. Ask for less at a time`,
  );
}

/**
 * Removes the files of an attempt. A failure is only logged, because the files are removed anyway
 * when the export expires.
 */
async function removeAttempt(context: ExportContext, jobId: string, attempt: number): Promise<void> {
  try {
    await context.files.removeFolder(attemptFolder(jobId, attempt));
  } catch (error) {
    context.log.warn({ err: error, job_id: jobId, attempt }, 'files of an attempt are left for later');
  }
}

/** Marks the export as failed. Does nothing if the export has ended. */
export async function failExport(
  context: ExportContext,
  exportId: number,
  { code, message }: TaskFailure,
): Promise<void> {
  const outcome = await inTransaction(context.pool, async ({ db }) => {
    const failed = await markFailed(db, exportId, { code, message });
    return (
      failed && { ...failed, due: await recordExportEnd(context, db, failed.environmentId, failed.jobId) }
    );
  });
  if (outcome === null) return;
  context.log.warn({ ...jobFields(outcome), code }, `export failed: ${message}`);
  await notifyQueue(context, outcome.due);
}

/**
 * Cancels the export and its running statement. Returns the time of the cancellation, or of the
 * first cancellation if the idempotency key is repeated.
 * @throws InputError `not_found`, `job_not_cancellable`, `idempotency_conflict`
 */
export async function cancelExport(
  context: ExportContext,
  environmentId: number,
  jobId: string,
  idempotencyKey: string | null = null,
): Promise<Date> {
  const { at, taskId, due } = await inTransaction(context.pool, async ({ db }) => {
    const earlier = await claimJobAction(db, environmentId, 'cancel', jobId, idempotencyKey);
    if (earlier !== null) return { at: earlier, taskId: null, due: null };
    const cancelled = await markCancelled(db, environmentId, jobId);
    if (cancelled === null) throw await notCancellable(db, environmentId, jobId);
    await context.acts.record(db, { action: 'export.cancelled', environmentId, thing: jobId });
    return { ...cancelled, due: await recordExportEnd(context, db, environmentId, jobId) };
  });
  if (due === null) return at;
  context.log.info({ job_id: jobId }, 'export cancelled');
  // If ending the session fails, the worker notices the cancellation within two seconds. The
  // reconciler ends the session of a paused worker.
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
  return inputError('job_not_cancellable', `The job is ${status} already`, `job_id: ${jobId}`);
}

/**
 * Reports the end of the export to other parts of sluice. Must be called in the transaction that
 * ends the export.
 */
async function recordExportEnd(
  { baseUrl, jobs }: Pick<ExportContext, 'baseUrl' | 'jobs'>,
  db: Database,
  environmentId: number,
  jobId: string,
): Promise<readonly DueTask[]> {
  const row = await readExportEnd(db, environmentId, jobId);
  const status = endedStatuses.find((ended) => ended === row.status);
  if (status === undefined) throw new Fault(`export ${jobId} is ${row.status} and has not ended`);
  return jobs.ended(db, {
    type: `export.${status}`,
    environmentId,
    jobId,
    emails: status === 'cancelled' ? [] : row.emails,
    async describe() {
      const history = await readJobHistory(db, environmentId, jobId);
      return renderExportDetail(await requireExport({ db }, environmentId, jobId), history, baseUrl);
    },
  });
}
