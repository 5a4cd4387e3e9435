import { sql } from 'kysely';
import type { Database } from '../database.ts';
import type { ChunkClaim } from './chunks.ts';
import type { FinishClaim } from './finish.ts';

/*
 * A worker that is paused in the middle of a transaction keeps its row locks, and with them whoever takes its work
 * over, or merely wants to count it done, would wait. So every such transaction names its session after the attempt
 * it works for, and an attempt that has lost its lease loses its session too. It could not have committed anyway.
 * Only in this database: another on the same server may have a load of the same number.
 */
const chunkPrefix = (claim: ChunkClaim): string => `sluice chunk ${claim.loadId}:${claim.chunkNo}:`;

/** Names the session after the attempt, until the transaction ends. */
export async function nameChunkSession(db: Database, claim: ChunkClaim): Promise<void> {
  await nameSession(db, `${chunkPrefix(claim)}${claim.attempt}`);
}

/** Names the session after the attempt, until the transaction ends. */
export async function nameFinishSession(db: Database, claim: FinishClaim): Promise<void> {
  await nameSession(db, `sluice finish ${claim.loadId}:${claim.attempt}`);
}

async function nameSession(db: Database, name: string): Promise<void> {
  await sql`select set_config('application_name', ${name}, true)`.execute(db);
}

/** Ends the sessions of earlier attempts at a chunk. */
export async function endEarlierAttempts(db: Database, claim: ChunkClaim): Promise<void> {
  if (claim.attempt === 1) return;
  await sql`
    select pg_terminate_backend(pid)
    from pg_stat_activity
    where datname = current_database()
      and usename = current_user
      and pid <> pg_backend_pid()
      and application_name like ${`${chunkPrefix(claim)}%`}
      and application_name <> ${`${chunkPrefix(claim)}${claim.attempt}`}`.execute(db);
}

/** Ends the sessions of attempts whose lease has run out. Takes no lock, so none of theirs can stop it. */
export async function endSilentSessions(db: Database): Promise<number> {
  const { rows } = await sql<{ ended: boolean }>`
    select pg_terminate_backend(pid) as ended
    from pg_stat_activity
    where datname = current_database()
      and usename = current_user
      and pid <> pg_backend_pid()
      and application_name in (
        select 'sluice chunk ' || load_id || ':' || chunk_no || ':' || attempt
        from load_chunks
        where state = 'running' and lease_until < now()
        union all
        select 'sluice finish ' || load_id || ':' || finish_attempt
        from loads
        where status = 'processing' and finish_lease_until < now()
      )`.execute(db);
  return rows.length;
}
