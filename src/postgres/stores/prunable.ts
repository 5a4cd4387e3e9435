import { sql } from 'kysely';
import { NOTIFICATION_RETENTION_DAYS } from '../../domain/limits.ts';
import type { FileRef } from '../../files/file-store.ts';
import type { Database } from '../database.ts';
import { forgetPlannedRows } from './plans.ts';
import { forgetRepeats } from './repeats.ts';

export interface RetentionDays {
  readonly fileDays: number;
  readonly exportDays: number;
  readonly jobDays: number;
}

export interface Prunable {
  readonly files: number;
  readonly jobs: number;
  readonly exports: number;
  readonly records: number;
  readonly deletions: number;
  readonly inboxFiles: number;
  readonly notifications: number;
  readonly runs: number;
}

/**
 * What has outlived its retention. A record goes once its files are gone, which a pruning sees to first. The last run of a
 * schedule, and events that are still being sent, are counted and stay.
 */
export async function countPrunable(
  db: Database,
  { fileDays, exportDays, jobDays }: RetentionDays,
): Promise<Prunable> {
  const { rows } = await sql<Prunable>`
    with days as (
      select
        now() - ${fileDays} * interval '1 day' as files,
        now() - ${jobDays} * interval '1 day' as jobs
    ),
    of_loads as (
      select
        count(*) filter (where file_ref is not null and ended_at < d.files) as files,
        count(*) filter (where ended_at < d.jobs and (file_ref is null or ended_at < d.files)) as jobs
      from loads, days d
    ),
    of_exports as (
      select
        count(*) filter (where files_expired_at is null and ended_at < now() - coalesce(retention_days, ${exportDays}) * interval '1 day') as exports,
        count(*) filter (
          where ended_at < d.jobs
            and (files_expired_at is not null or ended_at < now() - coalesce(retention_days, ${exportDays}) * interval '1 day')
        ) as records
      from exports, days d
    ),
    of_deletions as (
      select count(*) filter (where ended_at < d.jobs) as deletions
      from deletions, days d
    ),
    of_others as (
      select
        (select count(*) from inbox_files where state = 'concluded' and concluded_at < d.jobs) as "inboxFiles",
        (
          select count(*)
          from notification_events
          where created_at < greatest(d.jobs, now() - ${NOTIFICATION_RETENTION_DAYS} * interval '1 day')
        ) as notifications,
        (select count(*) from schedule_runs where ended_at < d.jobs) as runs
      from days d
    )
    select *
    from of_loads, of_exports, of_deletions, of_others`.execute(db);
  const [row] = rows;
  if (row === undefined) throw new Error('a row was expected');
  return row;
}

/** Received files that have outlived their retention, up to `limit`. */
export async function findExpiredFiles(
  db: Database,
  fileDays: number,
  limit: number,
): Promise<{ readonly loadId: number; readonly ref: FileRef }[]> {
  const rows = await db
    .selectFrom('loads')
    .select(['load_id', 'file_ref'])
    .where('file_ref', 'is not', null)
    .where('ended_at', '<', daysAgo(fileDays))
    .limit(limit)
    .execute();
  return rows.map((row) => ({ loadId: row.load_id, ref: row.file_ref as FileRef }));
}

/** The file of a load is gone, and with it what was kept for a retry, which without the file there cannot be, and the rows of its plan. */
export async function forgetFile(db: Database, loadId: number): Promise<void> {
  await forgetPlannedRows(db, [loadId]);
  await db.updateTable('loads').set({ file_ref: null }).where('load_id', '=', loadId).execute();
  await forgetRepeats(db, [loadId]);
}

/** Deletes the records of loads that ended `jobDays` ago and have no file any more, with their rejects; how many that were. */
export async function deleteLoads(db: Database, jobDays: number): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('loads')
    .where('file_ref', 'is', null)
    .where('ended_at', '<', daysAgo(jobDays))
    // One that is being mended is still to be counted in.
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('loads as child')
            .select('child.load_id')
            .whereRef('child.amends', '=', 'loads.load_id')
            .where('child.status', 'in', ['queued', 'processing']),
        ),
      ),
    )
    .executeTakeFirst();
  return Number(numDeletedRows);
}

/** Idempotency keys hold for 24 hours. */
export async function forgetOldKeys(db: Database): Promise<void> {
  await db
    .deleteFrom('idempotency_keys')
    .where('created_at', '<', sql<Date>`now() - interval '24 hours'`)
    .execute();
}

const daysAgo = (days: number) => sql<Date>`now() - ${days} * interval '1 day'`;
