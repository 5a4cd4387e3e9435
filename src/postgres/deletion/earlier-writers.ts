import { sql } from 'kysely';
import type { Database } from '../database.ts';

/** A mark between the transactions that have begun to write by now and those that will. */
export async function markNow(db: Database): Promise<string> {
  const { rows } = await sql<{
    mark: string;
  }>`select pg_snapshot_xmax(pg_current_snapshot())::text as mark`.execute(db);
  return rows[0]?.mark ?? '0';
}

/** Whether every transaction that had begun to write before the mark has ended. */
export async function earlierWritersEnded(db: Database, mark: string): Promise<boolean> {
  const { rows } = await sql<{ ended: boolean }>`
    select pg_snapshot_xmin(pg_current_snapshot()) >= ${mark}::xid8 as ended`.execute(db);
  return rows[0]?.ended ?? false;
}
