import { sql } from 'kysely';
import type { Database } from '../database.ts';

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
