import { sql } from 'kysely';
import type { FileRef } from '../../files/file-store.ts';
import type { Database } from '../database.ts';

/** Loads of the deletion's environment that were accepted before it. By then all of them have ended. */
const earlier = (deletionId: number) => sql<boolean>`exists (
  select
  from deletions d
  where d.deletion_id = ${deletionId}
    and d.environment_id = loads.environment_id
    and loads.accepted_at <= d.accepted_at
    and loads.ended_at is not null
)`;

/** Whether a deletion of the environment was accepted after the load: the load's file is no longer to be used. */
export async function isBeforeDeletion(db: Database, environmentId: number, jobId: string): Promise<boolean> {
  const { rows } = await sql<{ before: boolean }>`
    select exists (
      select
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
export async function findKeptFiles(db: Database, deletionId: number, limit: number): Promise<KeptFile[]> {
  const rows = await db
    .selectFrom('loads')
    .select(['load_id', 'file_ref'])
    .where('file_ref', 'is not', null)
    .where(earlier(deletionId))
    .orderBy('load_id')
    .limit(limit)
    .execute();
  return rows.map(({ load_id, file_ref }) => ({ loadId: load_id, ref: file_ref as FileRef }));
}

/** Their files are gone, and so is what was kept for a retry. */
export async function forgetFiles(db: Database, loadIds: readonly number[]): Promise<void> {
  await db.updateTable('loads').set({ file_ref: null }).where('load_id', 'in', loadIds).execute();
  await db.deleteFrom('load_chunk_keys').where('load_id', 'in', loadIds).execute();
  await db.deleteFrom('load_replays').where('load_id', 'in', loadIds).execute();
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
