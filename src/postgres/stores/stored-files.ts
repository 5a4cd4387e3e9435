import { type NotNull, sql } from 'kysely';
import type { ExportFile } from '../../domain/export.ts';
import { JOB_TRACE_DAYS } from '../../domain/limits.ts';
import type { FileRef } from '../../files/file-store.ts';
import { hex } from '../columns.ts';
import type { Database } from '../database.ts';
import { forgetPlannedRows } from './plans.ts';
import { forgetRepeats } from './repeats.ts';

/** Records a file before it is complete in the store, so that an abandoned one is found. */
export async function recordReceived(db: Database, ref: FileRef): Promise<void> {
  await db.insertInto('received_files').values({ file_ref: ref }).execute();
}

/** Somebody still uses the file; false if it is being removed, or gone. */
export async function touchReceived(db: Database, ref: FileRef): Promise<boolean> {
  const row = await db
    .updateTable('received_files')
    .set({ received_at: sql<Date>`now()` })
    .where('file_ref', '=', ref)
    .where('condemned_at', 'is', null)
    .returning('file_ref')
    .executeTakeFirst();
  return row !== undefined;
}

/** The file belongs to a load from now on; false if it is being removed. Call it in the transaction of the load. */
export async function takeReceived(db: Database, ref: FileRef): Promise<boolean> {
  const row = await db
    .deleteFrom('received_files')
    .where('file_ref', '=', ref)
    .where('condemned_at', 'is', null)
    .returning('file_ref')
    .executeTakeFirst();
  return row !== undefined;
}

/**
 * No load may take the file any more: true. False if one has it, or it is gone. Waits for a transaction that took it and of
 * which nobody knows yet whether it is committed. Call it in a transaction.
 * @throws an error of Postgres if that is not known within `withinMs`
 */
export async function condemnReceived(db: Database, ref: FileRef, withinMs: number): Promise<boolean> {
  const bound = `${withinMs}ms`;
  await sql`
    select set_config('statement_timeout', ${bound}, true), set_config('lock_timeout', ${bound}, true)`.execute(
    db,
  );
  const row = await db
    .updateTable('received_files')
    .set({ condemned_at: sql`coalesce(condemned_at, now())` })
    .where('file_ref', '=', ref)
    .returning('file_ref')
    .executeTakeFirst();
  return row !== undefined;
}

/** Takes up to `limit` files that no load has taken for `olderThanMs`; none can any more. */
export async function condemnAbandoned(db: Database, olderThanMs: number, limit: number): Promise<FileRef[]> {
  const rows = await db
    .updateTable('received_files')
    .set({ condemned_at: sql`coalesce(condemned_at, now())` })
    .where('file_ref', 'in', (eb) =>
      eb
        .selectFrom('received_files')
        .select('file_ref')
        .where('received_at', '<', sql<Date>`now() - ${olderThanMs} * interval '1 millisecond'`)
        .orderBy('received_at')
        .limit(limit),
    )
    .returning('file_ref')
    .execute();
  return rows.map(({ file_ref }) => file_ref);
}

export async function forgetReceived(db: Database, ref: FileRef): Promise<void> {
  await db.deleteFrom('received_files').where('file_ref', '=', ref).execute();
}

export function findExpiredFiles(
  db: Database,
  fileDays: number,
  limit: number,
): Promise<{ readonly loadId: number; readonly ref: FileRef }[]> {
  return db
    .selectFrom('loads')
    .select(['load_id as loadId', 'file_ref as ref'])
    .where('file_ref', 'is not', null)
    .where('ended_at', '<', daysAgo(fileDays))
    .limit(limit)
    .$narrowType<{ ref: NotNull }>()
    .execute();
}

/** Forgets the files of loads, which are gone, with what a retry would need and the rows of their plans. */
export async function forgetFiles(db: Database, loadIds: readonly number[]): Promise<void> {
  await forgetPlannedRows(db, loadIds);
  await db.updateTable('loads').set({ file_ref: null }).where('load_id', 'in', loadIds).execute();
  await forgetRepeats(db, loadIds);
}

/** Deletes the records of loads that ended `jobDays` ago and have no file any more, with their rejects; how many that were. */
export async function deleteLoads(db: Database, jobDays: number): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('loads')
    .where('file_ref', 'is', null)
    .where('ended_at', '<', daysAgo(jobDays))
    // A load that is being mended is still to be counted in.
    .where(
      sql<boolean>`not exists (
        select 1 from loads child where child.amends = loads.load_id and child.status in ('queued', 'processing')
      )`,
    )
    .executeTakeFirst();
  return Number(numDeletedRows);
}

const keptDays = [
  ['idempotency_keys', 'created_at', 1],
  // No job takes as long.
  ['job_traces', 'created_at', JOB_TRACE_DAYS],
  // Workers that were killed stay in the table until then.
  ['workers', 'seen_at', 1 / 24],
] as const;

/** Deletes idempotency keys, traces and signs of life that are old. */
export async function forgetOld(db: Database): Promise<void> {
  for (const [table, column, days] of keptDays) {
    await sql`delete from ${sql.table(table)} where ${sql.ref(column)} < ${daysAgo(days)}`.execute(db);
  }
}

const daysAgo = (days: number) => sql<Date>`now() - ${days} * interval '1 day'`;

export async function readExportFiles(
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

export interface FoundFile {
  readonly environmentId: number;
  readonly filesExpired: boolean;
  readonly file: (ExportFile & { readonly ref: FileRef }) | null;
}

export async function findExportFile(
  db: Database,
  jobId: string,
  filename: string,
): Promise<FoundFile | null> {
  const found = await db
    .selectFrom('exports')
    .select(['export_id', 'environment_id', 'files_expired_at'])
    .where('job_id', '=', jobId)
    .executeTakeFirst();
  if (found === undefined) return null;
  const file = await selectFiles(db)
    .where((eb) => eb.and({ export_id: found.export_id, filename }))
    .executeTakeFirst();
  return {
    environmentId: found.environment_id,
    filesExpired: found.files_expired_at !== null,
    file: file ?? null,
  };
}
