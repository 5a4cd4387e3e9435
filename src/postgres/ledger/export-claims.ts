import { sql } from 'kysely';
import type { ExportFile, ExportRequest } from '../../domain/export.ts';
import type { JobIdentity } from '../../domain/job-fields.ts';
import type { Database } from '../database.ts';
import { afterPause, leaseFor } from './lease.ts';

/** One attempt at one export. The attempt number fences every write it makes. */
export interface ExportClaim extends JobIdentity {
  readonly exportId: number;
  readonly environmentId: number;
  readonly environmentName: string;
  readonly appToken: string;
  readonly attempt: number;
  readonly request: ExportRequest;
}

/**
 * Takes an export for this worker; null if it has ended or another has it. One whose lease has run out is to be rescued
 * first: that is where losses are counted.
 */
export async function claimExport(db: Database, exportId: number): Promise<ExportClaim | null> {
  const row = await db
    .updateTable('exports')
    .from('environments')
    .whereRef('environments.environment_id', '=', 'exports.environment_id')
    .set((eb) => ({
      status: 'processing',
      attempt: eb('attempt', '+', 1),
      lease_until: leaseFor(),
      started_at: sql`coalesce(started_at, now())`,
      rows_expected: null,
      rows_written: 0,
      bytes_written: 0,
    }))
    .where('export_id', '=', exportId)
    .where('status', 'in', ['queued', 'processing'])
    .where('lease_until', 'is', null)
    .returning(['job_id', 'request_id', 'exports.environment_id', 'name', 'app_token', 'attempt', 'request'])
    .executeTakeFirst();
  if (row === undefined) return null;
  return {
    exportId,
    jobId: row.job_id,
    requestId: row.request_id,
    environmentId: row.environment_id,
    environmentName: row.name,
    appToken: row.app_token,
    attempt: row.attempt,
    request: row.request as unknown as ExportRequest,
  };
}

/** How far an attempt is. */
export interface ExportProgress {
  readonly rowsExpected: number | null;
  readonly rowsWritten: number;
  readonly bytesWritten: number;
}

/** Prolongs the lease and notes the progress; false when the export is no longer ours, or is cancelled. */
export async function renewExport(
  db: Database,
  claim: ExportClaim,
  progress: ExportProgress,
): Promise<boolean> {
  const row = await own(db, claim)
    .set({
      lease_until: leaseFor(),
      rows_expected: progress.rowsExpected,
      rows_written: progress.rowsWritten,
      bytes_written: progress.bytesWritten,
    })
    .returning('export_id')
    .executeTakeFirst();
  return row !== undefined;
}

/** Gives an export back; it is due again at once. No attempt is held against it. */
export async function releaseExport(db: Database, claim: ExportClaim): Promise<void> {
  await own(db, claim).set({ lease_until: null, dispatched_at: null }).execute();
}

/**
 * Gives an export back after an error, to be tried again a while later; returns how often that has happened, or null
 * when the export is no longer ours.
 */
export async function noteExportFailure(
  db: Database,
  claim: ExportClaim,
  message: string,
): Promise<number | null> {
  const row = await own(db, claim)
    .set((eb) => ({
      lease_until: null,
      dispatched_at: null,
      due_at: afterPause,
      failures: eb('failures', '+', 1),
      last_error: message,
    }))
    .returning('failures')
    .executeTakeFirst();
  return row?.failures ?? null;
}

/**
 * The fence: the export is completed and its files are there, if this attempt still owns it. False otherwise; the
 * caller must then roll back. Call it inside a transaction.
 */
export async function completeExport(
  db: Database,
  claim: ExportClaim,
  { files, snapshotAt }: { readonly files: readonly ExportFile[]; readonly snapshotAt: Date },
): Promise<boolean> {
  const data = files.filter(({ dataset }) => dataset !== 'manifest');
  const completed = await own(db, claim)
    .set({
      status: 'completed',
      ended_at: sql`now()`,
      lease_until: null,
      snapshot_at: snapshotAt,
      rows_written: data.reduce((sum, { rows }) => sum + rows, 0),
      bytes_written: files.reduce((sum, { bytes }) => sum + bytes, 0),
    })
    .returning('export_id')
    .executeTakeFirst();
  if (completed === undefined) return false;
  if (files.length === 0) return true;
  await db
    .insertInto('export_files')
    .values(
      files.map((file) => ({
        export_id: claim.exportId,
        filename: file.filename,
        dataset: file.dataset,
        file_ref: file.ref,
        row_count: file.rows,
        byte_count: file.bytes,
        sha256: Buffer.from(file.sha256, 'hex'),
      })),
    )
    .execute();
  return true;
}

function own(db: Database, claim: ExportClaim) {
  return db
    .updateTable('exports')
    .where('export_id', '=', claim.exportId)
    .where('attempt', '=', claim.attempt)
    .where('status', '=', 'processing')
    .where('lease_until', 'is not', null);
}

/** Ends an export as failed; null if it has ended already. */
export async function failExport(
  db: Database,
  exportId: number,
  failure: { readonly code: string; readonly message: string },
): Promise<(JobIdentity & { readonly environmentId: number }) | null> {
  const row = await db
    .updateTable('exports')
    .set({
      status: 'failed',
      ended_at: sql`now()`,
      lease_until: null,
      failure_code: failure.code,
      failure_message: failure.message,
    })
    .where('export_id', '=', exportId)
    .where('status', 'in', ['queued', 'processing'])
    .returning(['job_id as jobId', 'request_id as requestId', 'environment_id as environmentId'])
    .executeTakeFirst();
  return row ?? null;
}

/** Ends an export as cancelled; null if the environment has no such export, or it has ended already. */
export async function markExportCancelled(
  db: Database,
  environmentId: number,
  jobId: string,
): Promise<{ readonly exportId: number; readonly at: Date } | null> {
  const row = await db
    .updateTable('exports')
    .set({ status: 'cancelled', ended_at: sql`now()`, lease_until: null })
    .where('environment_id', '=', environmentId)
    .where('job_id', '=', jobId)
    .where('status', 'in', ['queued', 'processing'])
    .returning(['export_id as exportId', sql<Date>`now()`.as('at')])
    .executeTakeFirst();
  return row ?? null;
}
