import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../database.ts';
import { eventTable } from './retained.ts';

/**
 * Changes events wherever they are in the database, up to `limit` of them; returns how many. Those that are on their way out
 * too: an archive that is being written of them meanwhile will not be taken. `work` says how many it changed.
 */
export async function inEventTables(
  db: Database,
  limit: number,
  work: (table: RawBuilder<unknown>, limit: number) => Promise<number>,
): Promise<number> {
  // Whoever moves events locks the retirement first, and so does this; those that were begun since are looked for again.
  await lockRetired(db);
  let changed = await work(sql.table('events'), limit);
  for (const { retirementId, table } of await lockRetired(db)) {
    if (changed >= limit) break;
    const ofTable = await work(eventTable(table), limit - changed);
    if (ofTable > 0) await raiseRevision(db, retirementId);
    changed += ofTable;
  }
  return changed;
}

async function lockRetired(db: Database): Promise<{ retirementId: number; table: string }[]> {
  const { rows } = await sql<{ retirementId: number; table: string }>`
    select retirement_id as "retirementId", table_name as "table"
    from event_retirements
    where state = 'retired'
    order by retirement_id
    for update`.execute(db);
  return rows;
}

async function raiseRevision(db: Database, retirementId: number): Promise<void> {
  await db
    .updateTable('event_retirements')
    .set({ revision: sql`revision + 1` })
    .where('retirement_id', '=', retirementId)
    .execute();
}
