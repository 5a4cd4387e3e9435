import { sql } from 'kysely';
import type pg from 'pg';
import type { Database } from '../database.ts';

/** Spells RETN. */
const pruningLock = 0x5245544e;

/** One pruning of events at a time in a database; null if another has the lock, which goes with its connection. */
export async function withPruningLock<T>(pool: pg.Pool, work: () => Promise<T>): Promise<T | null> {
  const client = await pool.connect();
  let broken: Error | undefined;
  const onError = (error: Error): void => {
    broken = error;
  };
  client.on('error', onError);
  try {
    const { rows } = await client.query<{ taken: boolean }>('select pg_try_advisory_lock($1) as taken', [
      pruningLock,
    ]);
    if (rows[0]?.taken !== true) return null;
    try {
      return await work();
    } finally {
      await client.query('select pg_advisory_unlock($1)', [pruningLock]).catch(onError);
    }
  } finally {
    client.off('error', onError);
    client.release(broken);
  }
}

/** Writes down how a pruning of events ended; null: well. */
export async function noteEventPruning(db: Database, error: string | null): Promise<void> {
  await sql`
    insert into event_prunings as known (ended_at, error, failing_since)
    values (now(), ${error}::text, case when ${error}::text is not null then now() end)
    on conflict (singleton) do update
    set
      ended_at = excluded.ended_at,
      error = excluded.error,
      failing_since = case when excluded.error is not null then coalesce(known.failing_since, now()) end`.execute(
    db,
  );
}
