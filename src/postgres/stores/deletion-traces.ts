import { type NotNull, sql } from 'kysely';
import type { FileRef } from '../../files/file-store.ts';
import type { Database } from '../database.ts';
import { restartTasks } from './tasks.ts';

/** Loads of the deletion's environment that were accepted before it. By then all of them have ended. */
const earlier = (deletionId: number) => sql<boolean>`exists (
  select 1
  from deletions d
  where d.deletion_id = ${deletionId}
    and d.environment_id = loads.environment_id
    and loads.accepted_at <= d.accepted_at
    and loads.ended_at is not null
)`;

/** Tells whether a deletion of the environment was accepted after the load, whose file must not be used any more. */
export async function isBeforeDeletion(db: Database, environmentId: number, jobId: string): Promise<boolean> {
  const { rows } = await sql<{ before: boolean }>`
    select exists (
      select 1
      from deletions d
      join loads l using (environment_id)
      where l.environment_id = ${environmentId} and l.job_id = ${jobId} and l.accepted_at <= d.accepted_at
    ) as before`.execute(db);
  return rows[0]?.before ?? false;
}

export interface KeptFile {
  readonly loadId: number;
  readonly ref: FileRef;
}

/** Up to `limit` files kept of earlier loads. */
export function findKeptFiles(db: Database, deletionId: number, limit: number): Promise<KeptFile[]> {
  return db
    .selectFrom('loads')
    .select(['load_id as loadId', 'file_ref as ref'])
    .where('file_ref', 'is not', null)
    .where(earlier(deletionId))
    .orderBy('load_id')
    .limit(limit)
    .$narrowType<{ ref: NotNull }>()
    .execute();
}

/** Earlier loads that have refused records. */
export async function findLoadsWithRejects(db: Database, deletionId: number): Promise<number[]> {
  const rows = await db
    .selectFrom('loads')
    .select('load_id')
    .where(earlier(deletionId))
    .where((eb) =>
      eb.exists(
        eb.selectFrom('load_rejects as r').select('r.load_id').whereRef('r.load_id', '=', 'loads.load_id'),
      ),
    )
    .orderBy('load_id')
    .execute();
  return rows.map(({ load_id }) => load_id);
}

/** Removes refused records by their row numbers; returns how many were there. */
export async function deleteRejects(db: Database, loadId: number, rows: readonly number[]): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('load_rejects')
    .where('load_id', '=', loadId)
    .where('row_number', 'in', rows)
    .executeTakeFirst();
  return Number(numDeletedRows);
}

/** A mark between the transactions that have begun to write by now and those that will. */
export async function markNow(db: Database): Promise<string> {
  const { rows } = await sql<{
    mark: string;
  }>`select pg_snapshot_xmax(pg_current_snapshot())::text as mark`.execute(db);
  return rows[0]?.mark ?? '0';
}

/** Tells whether every transaction that had begun to write before the mark has ended. */
export async function earlierWritersEnded(db: Database, mark: string): Promise<boolean> {
  const { rows } = await sql<{ ended: boolean }>`
    select pg_snapshot_xmin(pg_current_snapshot()) >= ${mark}::xid8 as ended`.execute(db);
  return rows[0]?.ended ?? false;
}

/**
 * Exports of the environment that are under way begin anew: what they have written is of a moment before. Their workers
 * find out when they renew the lease, and cannot complete any more. Returns the moment: no export that is under way
 * then, or begins later, shows what was before it.
 */
export async function restartExports(db: Database, environmentId: number): Promise<Date> {
  const { rows } = await sql<{ moment: Date }>`select clock_timestamp() as moment`.execute(db);
  await restartTasks(db, 'export', environmentId);
  return rows[0]?.moment ?? new Date();
}

/** Up to `limit` completed exports of the environment whose files show what was at `moment` or before. */
export async function findKeptExports(
  db: Database,
  environmentId: number,
  moment: Date,
  limit: number,
): Promise<{ exportId: number; jobId: string }[]> {
  return db
    .selectFrom('exports')
    .select(['export_id as exportId', 'job_id as jobId'])
    .where('environment_id', '=', environmentId)
    .where('status', '=', 'completed')
    .where('files_expired_at', 'is', null)
    .where('snapshot_at', '<=', moment)
    .orderBy('export_id')
    .limit(limit)
    .execute();
}

/** Counts archived events to the ids that they went with; returns how many they are. */
export async function countErased(
  db: Database,
  deletionId: number,
  found: ReadonlyMap<string, number>,
): Promise<number> {
  const events = [...found.values()];
  await sql`
    update deletion_ids i
    set events = i.events + f.events
    from unnest(${[...found.keys()]}::text[], ${events}::bigint[]) f (id, events)
    where i.deletion_id = ${deletionId} and i.id = f.id`.execute(db);
  return events.reduce((sum, count) => sum + count, 0);
}
