import { sql } from 'kysely';
import type { Database } from '../database.ts';

/** Serialises decisions about one lane; the class half of a two-key advisory lock. */
const laneLock = 0x4c414e45;

/**
 * A lane is an environment: its loads run one after another, in the order of acceptance. Starts the next one if
 * none runs; returns its load_id, or null if there is nothing to start. Call it inside a transaction.
 */
export async function startNextLoad(db: Database, environmentId: number): Promise<number | null> {
  await sql`select pg_advisory_xact_lock(${laneLock}, ${environmentId})`.execute(db);
  const started = await db
    .updateTable('loads')
    .set({ status: 'processing', started_at: sql`coalesce(started_at, now())`, dispatched_at: sql`now()` })
    .where('load_id', '=', (eb) =>
      eb
        .selectFrom('loads as next')
        .select('next.load_id')
        .where('next.environment_id', '=', environmentId)
        .where('next.status', 'in', ['queued', 'processing'])
        // A running load sorts first and is then not `queued`: nothing starts.
        .orderBy(sql`next.status = 'processing'`, 'desc')
        .orderBy('next.lane_position')
        .limit(1),
    )
    .where('status', '=', 'queued')
    .returning('load_id')
    .executeTakeFirst();
  return started?.load_id ?? null;
}

/** Environments in which something waits and nothing runs. */
export async function idleLanes(db: Database): Promise<number[]> {
  const rows = await db
    .selectFrom('loads')
    .select('environment_id')
    .where('status', 'in', ['queued', 'processing'])
    .groupBy('environment_id')
    .having(sql<boolean>`not bool_or(status = 'processing')`)
    .execute();
  return rows.map((row) => row.environment_id);
}
