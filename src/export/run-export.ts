import { ConflictError, Fault, Interrupted } from '../domain/errors.ts';
import { jobFields } from '../domain/job-fields.ts';
import { EXPORT_PART_BYTES, MAX_EXPORT_FAILURES } from '../domain/limits.ts';
import { ringForDeliveries } from '../notifications/record-end.ts';
import {
  claimExport,
  completeExport,
  type ExportClaim,
  noteExportFailure,
  releaseExport,
} from '../postgres/ledger/export-claims.ts';
import { findNextExport } from '../postgres/ledger/next-tasks.ts';
import {
  endEarlierExportSessions,
  exportSessionName,
  nameExportSession,
} from '../postgres/ledger/sessions.ts';
import { analyzeStale } from '../postgres/maintenance.ts';
import { describeFailure, isTransient } from '../postgres/sqlstate.ts';
import type { DueDelivery } from '../postgres/stores/deliveries.ts';
import { inTransaction } from '../postgres/transaction.ts';
import type { Turns } from '../tasks/turns.ts';
import { type Attempt, notOurs, startAttempt } from './attempt.ts';
import type { ExportContext } from './context.ts';
import { endFailed } from './end-failed.ts';
import { ExportFailure } from './export-failure.ts';
import { findSegments } from './find-segments.ts';
import { attemptFolder } from './folder.ts';
import { recordExportEnd } from './record-export-end.ts';
import type { WrittenExport, writeExport } from './write/write-export.ts';

/** What writes the files; the tests have others, that stop where they are told to. */
export type ExportWriter = typeof writeExport;

/** Times that another worker may take the export that was found to be next before this one looks no further. */
const raceLimit = 10;

/** Does the export that is next, as `runExport`; nothing, if none is due. */
export async function runNextExport(
  context: ExportContext,
  turns: Turns,
  write: ExportWriter,
  stopping: AbortSignal,
): Promise<void> {
  for (let race = 0; race < raceLimit && !stopping.aborted; race++) {
    const next = await findNextExport(context.db, turns.served);
    if (next === null) return;
    turns.took(next.environmentId);
    if (await runExport(context, next.exportId, write, stopping)) return;
  }
}

/**
 * Does one export: claim, write the files from one snapshot, complete; the last in one transaction with the list of the
 * files. May be called twice, late, or for an export that has ended: false then, there was nothing to do. `stopping` is
 * aborted when the worker is to stop; the export is then given back.
 */
export async function runExport(
  context: ExportContext,
  exportId: number,
  write: ExportWriter,
  stopping: AbortSignal,
): Promise<boolean> {
  if (stopping.aborted) return false;
  const claim = await claimExport(context.db, exportId);
  if (claim === null) return false;
  const attempt = startAttempt(context, claim, stopping);
  let committing = false;
  try {
    await endEarlierAttempts(context, claim);
    const written = await writeFiles(context, claim, attempt, write);
    attempt.signal.throwIfAborted();
    committing = true;
    await complete(context, claim, written);
  } catch (error) {
    attempt.end();
    // A commit whose answer was lost may have succeeded: then the files are wanted. If not, the next attempt removes them.
    if (!committing || error instanceof ConflictError)
      await removeAttempt(context, claim.jobId, claim.attempt);
    await giveBack(context, claim, attempt.signal.aborted ? attempt.signal.reason : error);
  } finally {
    attempt.end();
  }
  return true;
}

async function writeFiles(
  context: ExportContext,
  claim: ExportClaim,
  attempt: Attempt,
  write: ExportWriter,
): Promise<WrittenExport> {
  const { db, pool, files, log } = context;
  const folder = attemptFolder(claim.jobId, claim.attempt);
  const segments = await findSegments(db, claim.environmentId, claim.request);
  if (segments.segment !== null || segments.excludedSegments.length > 0) await analyzeStale(db, log);
  return write(
    { pool, log: log.child(jobFields(claim)), files: { ...files, create: () => files.create(folder) } },
    {
      environmentId: claim.environmentId,
      request: claim.request,
      ...segments,
      manifest: {
        jobId: claim.jobId,
        environmentName: claim.environmentName,
        appToken: claim.appToken,
      },
      sessionName: exportSessionName(claim),
      signal: attempt.signal,
      splitBytes: EXPORT_PART_BYTES,
      onProgress: attempt.reached,
      onSnapshot: ({ rowsExpected }) => attempt.expect(rowsExpected),
    },
  );
}

/** This commit waits for the disk, where the files are already. */
async function complete(context: ExportContext, claim: ExportClaim, written: WrittenExport): Promise<void> {
  const due: DueDelivery[] = await inTransaction(context.pool, async ({ db }) => {
    await nameExportSession(db, claim);
    if (await completeExport(db, claim, written)) {
      return recordExportEnd(context, db, claim.environmentId, claim.jobId);
    }
    throw new ConflictError(notOurs);
  });
  context.log.info({ ...jobFields(claim), files: written.files.length }, 'export completed');
  await ringForDeliveries(context, due);
}

async function giveBack(context: ExportContext, claim: ExportClaim, error: unknown): Promise<void> {
  const fields = { ...jobFields(claim), err: error, attempt: claim.attempt };
  if (error instanceof ConflictError) {
    context.log.info({ ...jobFields(claim), attempt: claim.attempt }, error.message);
    return;
  }
  if (error instanceof Interrupted) {
    context.log.info(jobFields(claim), 'export given back; another worker begins it anew');
    await releaseExport(context.db, claim).catch(() => undefined);
    return;
  }
  const message = error instanceof Error ? error.message : String(error);
  // If the database is away this fails too, and the lease runs out instead.
  const failures = await noteExportFailure(context.db, claim, message).catch(() => 0);
  if (failures === null) {
    // Whoever cancelled it or took it over has ended our session, and the error says no more than that.
    context.log.info({ ...jobFields(claim), attempt: claim.attempt }, notOurs);
    return;
  }
  if (error instanceof ExportFailure) return endFailed(context, claim.exportId, error);
  context.log[isTransient(error) ? 'warn' : 'error'](fields, 'an attempt at an export failed');
  if (failures >= MAX_EXPORT_FAILURES || error instanceof Fault) {
    await endFailed(context, claim.exportId, describeFailure(error, 'export_failed'));
  }
}

/** What a worker that died or is paused has left; one that is merely late removes its own files when it finds out. */
async function endEarlierAttempts(
  context: ExportContext,
  { exportId, jobId, attempt }: ExportClaim,
): Promise<void> {
  await endEarlierExportSessions(context.db, { exportId, attempt });
  for (let earlier = 1; earlier < attempt; earlier++) await removeAttempt(context, jobId, earlier);
}

/** Should it fail: what is left goes with the export's folder, at the latest when its files expire. */
async function removeAttempt(context: ExportContext, jobId: string, attempt: number): Promise<void> {
  try {
    await context.files.removeFolder(attemptFolder(jobId, attempt));
  } catch (error) {
    context.log.warn({ err: error, job_id: jobId, attempt }, 'files of an attempt are left for later');
  }
}
