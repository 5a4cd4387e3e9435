import { sql } from 'kysely';
import { LEASE_MS } from '../../domain/limits.ts';
import type { Database } from '../database.ts';
import { isDue, isLapsed, isToldLongAgo } from './lease.ts';

export interface DueExport {
  readonly exportId: number;
  readonly attempt: number;
}

/**
 * Up to `limit` exports that nobody is at and that the queue was not told of for `olderThanMs`, oldest first; marks
 * them told.
 */
export async function takeDueExports(
  db: Database,
  olderThanMs: number,
  limit: number,
): Promise<(DueExport & { readonly isNew: boolean })[]> {
  const { rows } = await sql<DueExport & { isNew: boolean }>`
    with due as (
      select export_id, dispatched_at is null as is_new
      from exports
      where status in ('queued', 'processing')
        and lease_until is null
        and ${isDue('due_at')}
        and ${isToldLongAgo(olderThanMs)}
      order by export_id
      limit ${limit}
      for update skip locked
    )
    update exports e
    set dispatched_at = now()
    from due
    where e.export_id = due.export_id
    returning e.export_id as "exportId", e.attempt, due.is_new as "isNew"`.execute(db);
  return rows.sort((a, b) => a.exportId - b.exportId);
}

/** Exports whose worker gave no sign of life: due again. Returns them, with how often each has been lost. */
export async function rescueExports(
  db: Database,
): Promise<{ exportId: number; jobId: string; losses: number }[]> {
  const { rows } = await sql<{ exportId: number; jobId: string; losses: number }>`
    update exports
    set lease_until = null, dispatched_at = null, losses = losses + 1
    where status = 'processing' and ${isLapsed('lease_until')}
    returning export_id as "exportId", job_id as "jobId", losses`.execute(db);
  return rows;
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
