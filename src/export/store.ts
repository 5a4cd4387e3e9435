import { sql, type UpdateObject } from 'kysely';
import { LEASE_MS } from '../base/limits.ts';
import type { ExportFile, ExportRequest, ExportStatus, ExportWarning } from '../domain/export.ts';
import {
  type DueTask,
  type JobIdentity,
  type Origin,
  originColumns,
  type TaskClaim,
  type TaskFailure,
} from '../domain/task.ts';
import { camel, daysAgo, hex, inMs, snake, type Tables, toFailure } from '../postgres/columns.ts';
import { changedBy, type Database, prepared, selectWhere, updateWhere } from '../postgres/database.ts';
import { pageJobs } from '../tasks/job-store.ts';
import { deleteTasks, insertTask } from '../tasks/store.ts';

// queued → processing → completed | failed | cancelled. An export has a task until it ends. Every
// transaction that ends an export deletes the task first, to avoid deadlocks.
export interface NewExport extends JobIdentity {
  readonly origin: Origin | null;
  readonly environmentId: number;
  readonly request: ExportRequest;
  readonly emails: readonly string[];
  readonly warnings: readonly ExportWarning[];
  readonly retentionDays: number | null;
}

/**
 * Must be called in a transaction. After the commit, the caller sends the returned task to the
 * queue.
 */
export async function insertExport(
  db: Database,
  { jobId, requestId, origin, environmentId, request, emails, warnings, retentionDays }: NewExport,
): Promise<DueTask | null> {
  const { export_id } = await db
    .insertInto('exports')
    .values({
      ...snake({ jobId, requestId, environmentId, retentionDays }),
      ...originColumns(origin),
      request: JSON.stringify(request),
      format: request.format,
      compression: request.compression,
      emails: [...emails],
      warnings: JSON.stringify(warnings),
    })
    .returning('export_id')
    .executeTakeFirstOrThrow();
  return insertTask(db, { kind: 'export', subjectId: export_id, part: 0, environmentId, jobId, requestId });
}

export type ExportWork = NonNullable<Awaited<ReturnType<typeof beginExport>>>;

/**
 * Begins an attempt. Returns `null` if the export has ended. If `wasBegun` is true, earlier
 * attempts may have left files.
 */
export async function beginExport(db: Database, claim: TaskClaim) {
  const row = await db
    .updateTable('exports')
    .from('environments')
    .whereRef('environments.environment_id', '=', 'exports.environment_id')
    .set({
      status: 'processing',
      attempts: claim.attempt,
      started_at: sql`coalesce(started_at, now())`,
      rows_expected: null,
      rows_written: 0,
      bytes_written: 0,
    })
    .where('export_id', '=', claim.subjectId)
    .where('status', 'in', ['queued', 'processing'])
    .returning(camel('job_id', 'exports.environment_id', 'app_token', 'request'))
    .returning(['name as environmentName', sql<boolean>`started_at < now()`.as('wasBegun')])
    .executeTakeFirst();
  return row ?? null;
}

export interface ExportProgress {
  readonly rowsExpected: number | null;
  readonly rowsWritten: number;
  readonly bytesWritten: number;
}

/**
 * Records progress for display. Returns false if another attempt has taken over or the export has
 * ended.
 */
export async function recordProgress(
  db: Database,
  claim: TaskClaim,
  { rowsExpected, rowsWritten, bytesWritten }: ExportProgress,
): Promise<boolean> {
  const row = await updateWhere(db, 'exports', {
    exportId: claim.subjectId,
    attempts: claim.attempt,
    status: 'processing',
  })
    .set(snake({ rowsExpected, rowsWritten, bytesWritten }))
    .returning('export_id')
    .executeTakeFirst();
  return row !== undefined;
}

interface Written {
  readonly files: readonly ExportFile[];
  readonly snapshotAt: Date;
  readonly endedAt: Date;
  readonly cursor: string;
  readonly warnings: readonly ExportWarning[];
}

/**
 * Marks the export as completed and stores its list of files. Must be called in the transaction
 * that ends the task.
 */
export async function completeExport(
  db: Database,
  exportId: number,
  { files, snapshotAt, endedAt, cursor, warnings }: Written,
): Promise<void> {
  const data = files.filter(({ dataset }) => dataset !== 'manifest');
  await updateWhere(db, 'exports', { exportId, status: 'processing' })
    .set({
      status: 'completed',
      // This time must equal the time in the manifest, which is already stored.
      ended_at: endedAt,
      snapshot_at: snapshotAt,
      cursor,
      warnings: sql`warnings || ${JSON.stringify(warnings)}::jsonb`,
      rows_written: data.reduce((sum, { rows }) => sum + rows, 0),
      bytes_written: files.reduce((sum, { bytes }) => sum + bytes, 0),
    })
    .execute();
  if (files.length === 0) return;
  await db
    .insertInto('export_files')
    .values(
      files.map((file) => ({
        export_id: exportId,
        filename: file.filename,
        dataset: file.dataset,
        file_ref: file.ref,
        row_count: file.rows,
        byte_count: file.bytes,
        sha256: Buffer.from(file.sha256, 'hex'),
      })),
    )
    .execute();
}

/** Marks the export as failed. Returns `null` if the export has already ended. */
export function failExport(db: Database, exportId: number, { code, message }: TaskFailure) {
  return end(db, exportId, { status: 'failed', failure_code: code, failure_message: message });
}

/**
 * Marks the export as cancelled. Returns `null` if the environment lacks the export, or if the
 * export has already ended.
 */
export async function cancelExport(db: Database, environmentId: number, jobId: string) {
  const row = await selectWhere(db, 'exports', { environmentId, jobId })
    .select('export_id')
    .executeTakeFirst();
  return row === undefined ? null : end(db, row.export_id, { status: 'cancelled' });
}

/**
 * Ends the export and deletes its task. The result includes the task's id. Returns `null` if the
 * export had already ended.
 */
async function end(db: Database, exportId: number, to: UpdateObject<Tables, 'exports'>) {
  const [taskId = null] = await deleteTasks(db, ['export'], exportId);
  const row = await updateWhere(db, 'exports', { exportId })
    .set({ ...to, ended_at: sql`now()` })
    .where('status', 'in', ['queued', 'processing'])
    .returning(camel('job_id', 'request_id', 'environment_id'))
    .returning(sql<Date>`now()`.as('at'))
    .executeTakeFirst();
  return row === undefined ? null : { ...row, taskId };
}

/**
 * Finds failed and cancelled exports that may have left files. These exports ended at least one
 * lease ago, so no worker is writing any more.
 */
export function findLeftovers(db: Database, limit: number) {
  return withFiles(prepared(db))
    .where('status', 'in', ['failed', 'cancelled'])
    .where('ended_at', '<', inMs(-LEASE_MS))
    .limit(limit)
    .execute();
}

function withFiles(db: Database) {
  return db
    .selectFrom('exports')
    .select(camel('export_id', 'job_id'))
    .where('files_expired_at', 'is', null)
    .orderBy('ended_at');
}

/**
 * Finds exports whose retention period is over. `days` applies to exports without a retention
 * period of their own.
 */
export function findExpired(db: Database, days: number, limit: number) {
  return withFiles(db)
    .where('ended_at', '<', sql<Date>`now() - coalesce(retention_days, ${days}) * interval '1 day'`)
    .limit(limit)
    .execute();
}

/**
 * Records that the files were removed. The files remain listed, so that a removed file differs from
 * a wrong link.
 */
export async function markFilesExpired(db: Database, exportId: number): Promise<void> {
  await updateWhere(db, 'exports', { exportId }).set({ files_expired_at: sql`now()` }).execute();
}

/** Deletes only exports whose files have been removed. */
export function deleteExports(db: Database, days: number): Promise<number> {
  return changedBy(db)`
    delete from exports where files_expired_at is not null and ended_at < ${daysAgo(days)}`;
}

const lastError = sql<string | null>`(
  select t.last_error from tasks t where t.kind = 'export' and t.subject_id = exports.export_id
)`.as('lastError');

export type Export = Awaited<ReturnType<typeof readExports>>[number];

/** The result is in no particular order. */
export async function readExports(db: Database, environmentId: number, jobIds: readonly string[]) {
  if (jobIds.length === 0) return [];
  const rows = await selectWhere(db, 'exports', { environmentId })
    .select(camel('export_id', 'job_id', 'environment_id', 'status', 'format', 'emails', 'warnings'))
    .select(camel('started_at', 'ended_at', 'attempts', 'snapshot_at', 'cursor', 'files_expired_at'))
    .select(camel('rows_expected', 'rows_written', 'bytes_written', 'failure_code', 'failure_message'))
    .select(['requested_at as acceptedAt', lastError])
    .where('job_id', 'in', jobIds)
    .execute();
  const ended = rows.filter((row) => row.status === 'completed').map((row) => row.exportId);
  const files = await readExportFiles(db, ended);
  return rows.map(({ rowsExpected, failureCode, failureMessage, filesExpiredAt, ...row }) => ({
    ...row,
    type: 'export' as const,
    filename: `export-${row.acceptedAt.toISOString().slice(0, 10)}.${row.format}`,
    fileSize: row.bytesWritten,
    totalRows: row.rowsWritten,
    progress: progressOf(row.status, row.rowsWritten, rowsExpected),
    failure: toFailure(failureCode, failureMessage),
    /** All files that were written, including expired ones. */
    written: files.get(row.exportId) ?? [],
    /**
     * Files that can be downloaded. The list is empty before the export has completed and after the
     * files have expired.
     */
    files: filesExpiredAt === null ? (files.get(row.exportId) ?? []) : [],
    filesExpired: filesExpiredAt !== null,
  }));
}

/**
 * Returns the share of written rows, from 0 to 1. It is below 1 until completion, because
 * `expected` is an estimate.
 */
function progressOf(status: ExportStatus, written: number, expected: number | null): number {
  if (status === 'completed') return 1;
  if (expected === null || expected <= 0) return 0;
  return Math.floor(Math.min(written / expected, 0.99) * 10_000) / 10_000;
}

/**
 * Returns a page of exports, newest first. `after` is the last job id of the previous page. The
 * returned `next` is the last job id of this page. Both may be `null`.
 */
export async function pageExports(
  db: Database,
  environmentId: number,
  filter: { readonly statuses?: readonly string[] | undefined },
  page: { readonly limit: number; readonly after: string | null; readonly offset?: number },
) {
  const { jobs, total, next } = await pageJobs(db, environmentId, { types: ['export'], ...filter }, page);
  const exports = await readExports(
    db,
    environmentId,
    jobs.map(({ jobId }) => jobId),
  );
  return { exports: exports.sort((a, b) => (a.jobId < b.jobId ? 1 : -1)), total, next };
}

export function readExportEnd(db: Database, environmentId: number, jobId: string) {
  return selectWhere(db, 'exports', { environmentId, jobId })
    .select(['status', 'emails'])
    .executeTakeFirstOrThrow();
}

async function readExportFiles(
  db: Database,
  exportIds: readonly number[],
): Promise<ReadonlyMap<number, readonly ExportFile[]>> {
  if (exportIds.length === 0) return new Map();
  const rows = await selectFiles(db)
    .select('export_id as exportId')
    .where('export_id', 'in', exportIds)
    .orderBy('export_id')
    .orderBy((eb) => eb('dataset', '=', 'manifest'))
    .orderBy('filename')
    .execute();
  const files = new Map<number, ExportFile[]>();
  for (const { exportId, ...file } of rows) files.set(exportId, [...(files.get(exportId) ?? []), file]);
  return files;
}

function selectFiles(db: Database) {
  return db
    .selectFrom('export_files')
    .select(['filename', 'dataset', 'file_ref as ref', 'row_count as rows', 'byte_count as bytes'])
    .select(hex('sha256', 'sha256'));
}

/**
 * Finds a file of an export. Returns `null` for an unknown job. `file` is `null` if the export has
 * no such file.
 */
export async function findExportFile(db: Database, jobId: string, filename: string) {
  const row = await selectWhere(db, 'exports', { jobId })
    .select(['export_id', 'environment_id', 'files_expired_at'])
    .executeTakeFirst();
  if (row === undefined) return null;
  const file = await selectFiles(db)
    .where((eb) => eb.and({ export_id: row.export_id, filename }))
    .executeTakeFirst();
  return {
    environmentId: row.environment_id,
    filesExpired: row.files_expired_at !== null,
    file: file ?? null,
  };
}
