import { sql, type UpdateObject } from 'kysely';
import type { ExportFile, ExportRequest, ExportWarning } from '../../domain/export.ts';
import { LEASE_MS } from '../../domain/limits.ts';
import { type Origin, originColumns } from '../../domain/origin.ts';
import type { DueTask, JobIdentity, TaskClaim, TaskFailure } from '../../domain/task.ts';
import type { Database } from '../database.ts';
import type { DB } from '../schema.ts';
import { deleteTasks, insertTask } from './tasks.ts';

/*
 * An export: queued → processing → completed | failed | cancelled. Every one of these steps is a function here. An export has a task
 * exactly while it has not ended. Whoever ends it takes its task first and then touches its row, so that no two wait for each other.
 */
export interface NewExport extends JobIdentity {
  readonly origin: Origin | null;
  readonly environmentId: number;
  readonly request: ExportRequest;
  readonly emails: readonly string[];
  readonly warnings: readonly ExportWarning[];
  /** Null: as the configuration says. */
  readonly retentionDays: number | null;
}

/** Accepted: queued, with its task, of which the queue is to be notified. Call it inside a transaction. */
export async function insertExport(db: Database, asked: NewExport): Promise<DueTask | null> {
  const { export_id } = await db
    .insertInto('exports')
    .values({
      job_id: asked.jobId,
      request_id: asked.requestId,
      ...originColumns(asked.origin),
      environment_id: asked.environmentId,
      request: JSON.stringify(asked.request),
      format: asked.request.format,
      compression: asked.request.compression,
      emails: [...asked.emails],
      warnings: JSON.stringify(asked.warnings),
      retention_days: asked.retentionDays,
    })
    .returning('export_id')
    .executeTakeFirstOrThrow();
  const { jobId, requestId, environmentId } = asked;
  return insertTask(db, { kind: 'export', subjectId: export_id, part: 0, environmentId, jobId, requestId });
}

/** What a worker must know of an export. */
export interface ExportWork {
  readonly jobId: string;
  readonly environmentId: number;
  readonly environmentName: string;
  readonly appToken: string;
  readonly request: ExportRequest;
}

/** Queued or processing → processing: an attempt begins, from nothing. Null if the export has ended. */
export async function beginExport(db: Database, claim: TaskClaim): Promise<ExportWork | null> {
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
    .returning(['job_id', 'exports.environment_id', 'name', 'app_token', 'request'])
    .executeTakeFirst();
  if (row === undefined) return null;
  return {
    jobId: row.job_id,
    environmentId: row.environment_id,
    environmentName: row.name,
    appToken: row.app_token,
    request: row.request as unknown as ExportRequest,
  };
}

/** How far an attempt is. */
export interface ExportProgress {
  readonly rowsExpected: number | null;
  readonly rowsWritten: number;
  readonly bytesWritten: number;
}

/** For those who look; false when the attempt is no longer the latest of an export under way. */
export async function recordProgress(
  db: Database,
  claim: TaskClaim,
  progress: ExportProgress,
): Promise<boolean> {
  const row = await db
    .updateTable('exports')
    .set({
      rows_expected: progress.rowsExpected,
      rows_written: progress.rowsWritten,
      bytes_written: progress.bytesWritten,
    })
    .where('export_id', '=', claim.subjectId)
    .where('attempts', '=', claim.attempt)
    .where('status', '=', 'processing')
    .returning('export_id')
    .executeTakeFirst();
  return row !== undefined;
}

/** Processing → completed, and its files are there. Call it in the transaction that ends the task. */
export async function completeExport(
  db: Database,
  exportId: number,
  { files, snapshotAt }: { readonly files: readonly ExportFile[]; readonly snapshotAt: Date },
): Promise<void> {
  const data = files.filter(({ dataset }) => dataset !== 'manifest');
  await db
    .updateTable('exports')
    .set({
      status: 'completed',
      ended_at: sql`now()`,
      snapshot_at: snapshotAt,
      rows_written: data.reduce((sum, { rows }) => sum + rows, 0),
      bytes_written: files.reduce((sum, { bytes }) => sum + bytes, 0),
    })
    .where('export_id', '=', exportId)
    .where('status', '=', 'processing')
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

/** An export that has just ended. */
export interface EndedExport extends JobIdentity {
  readonly environmentId: number;
  readonly at: Date;
  /** The task that it had. */
  readonly taskId: number | null;
}

/** Queued or processing → failed. Null if it has ended already. */
export async function failExport(
  db: Database,
  exportId: number,
  failure: TaskFailure,
): Promise<EndedExport | null> {
  return end(db, exportId, {
    status: 'failed',
    failure_code: failure.code,
    failure_message: failure.message,
  });
}

/** Queued or processing → cancelled. Null if the environment has no such export, or it has ended already. */
export async function cancelExport(
  db: Database,
  environmentId: number,
  jobId: string,
): Promise<EndedExport | null> {
  const found = await db
    .selectFrom('exports')
    .select('export_id')
    .where('environment_id', '=', environmentId)
    .where('job_id', '=', jobId)
    .executeTakeFirst();
  return found === undefined ? null : end(db, found.export_id, { status: 'cancelled' });
}

async function end(
  db: Database,
  exportId: number,
  to: UpdateObject<DB, 'exports'>,
): Promise<EndedExport | null> {
  const [taskId = null] = await deleteTasks(db, ['export'], exportId);
  const ended = await db
    .updateTable('exports')
    .set({ ...to, ended_at: sql`now()` })
    .where('export_id', '=', exportId)
    .where('status', 'in', ['queued', 'processing'])
    .returning([
      'job_id as jobId',
      'request_id as requestId',
      'environment_id as environmentId',
      sql<Date>`now()`.as('at'),
    ])
    .executeTakeFirst();
  return ended === undefined ? null : { ...ended, taskId };
}

/**
 * Failed and cancelled exports of which something may lie about still. Not at once: a worker that is at one finds out
 * that it has ended when it renews its lease, and would go on writing until then.
 */
export async function findLeftovers(
  db: Database,
  limit: number,
): Promise<{ exportId: number; jobId: string }[]> {
  const rows = await db
    .selectFrom('exports')
    .select(['export_id as exportId', 'job_id as jobId'])
    .where('status', 'in', ['failed', 'cancelled'])
    .where('files_expired_at', 'is', null)
    .where('ended_at', '<', sql<Date>`now() - ${LEASE_MS} * interval '1 millisecond'`)
    .orderBy('ended_at')
    .limit(limit)
    .execute();
  return rows;
}

/** Exports whose files have been kept long enough: `days`, unless the export says otherwise. */
export async function findExpired(
  db: Database,
  days: number,
  limit: number,
): Promise<{ exportId: number; jobId: string }[]> {
  const rows = await db
    .selectFrom('exports')
    .select(['export_id as exportId', 'job_id as jobId'])
    .where('files_expired_at', 'is', null)
    .where('ended_at', '<', sql<Date>`now() - coalesce(retention_days, ${days}) * interval '1 day'`)
    .orderBy('ended_at')
    .limit(limit)
    .execute();
  return rows;
}

/** Its files are gone. They stay listed, so that a link to one can be told from a wrong one. */
export async function markFilesExpired(db: Database, exportId: number): Promise<void> {
  await db
    .updateTable('exports')
    .set({ files_expired_at: sql`now()` })
    .where('export_id', '=', exportId)
    .execute();
}

/** Forgets exports that ended long ago, once their files are gone; how many. */
export async function deleteExports(db: Database, days: number): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('exports')
    .where('files_expired_at', 'is not', null)
    .where('ended_at', '<', sql<Date>`now() - ${days} * interval '1 day'`)
    .executeTakeFirst();
  return Number(numDeletedRows);
}
