import { type RawBuilder, sql } from 'kysely';
import type pg from 'pg';
import type { Ingest } from '../../../src/ingest/ingest.ts';
import * as profiles from '../../../src/ingest/profile-store.ts';
import type { ItemRecord } from '../../../src/ingest/records.ts';
import type { Database } from '../../../src/postgres/database.ts';
import type { Guard } from '../../../src/postgres/uses.ts';
import { waitFor } from '../wait-for.ts';

/**
 * Returns the guard of a process that knows every capability that the environments of the rows use.
 */
const guardOf = (rows: readonly profiles.ProfileRow[]): Guard => ({
  environments: [...new Set(rows.map(({ environmentId }) => environmentId))],
  uses: [],
  compose: (query) => query,
});

export function writeCompanies(
  connection: pg.Pool | pg.PoolClient,
  companies: readonly profiles.ProfileRow[],
): Promise<void> {
  return profiles.writeCompanies(connection, companies, guardOf(companies));
}

export function writeUsers(
  connection: pg.Pool | pg.PoolClient,
  users: readonly profiles.UserRow[],
  companies: readonly profiles.ProfileRow[],
): Promise<void> {
  return profiles.writeUsers(connection, users, companies, guardOf(users));
}

/** Sends a single record. `key` is the Idempotency-Key of the record, or `null`. */
export function sendRecord(
  ingest: Ingest,
  { entity, record }: ItemRecord,
  key: string | null,
): Promise<void> {
  const idempotency = key === null ? null : { key, digest: Buffer.from(key) };
  if (entity === 'users') return ingest.identifyUser(record, idempotency);
  return entity === 'events'
    ? ingest.track(record, idempotency)
    : ingest.identifyCompany(record, idempotency);
}

interface Watched {
  readonly db: Database;
}

/**
 * Calls `run`, which makes an environment use a capability for the first time. Resolves when `run`
 * waits for writers of single records.
 */
export async function untilItWaits<T>({ db }: Watched, run: () => Promise<T>): Promise<{ done: Promise<T> }> {
  const { rows } = await sql<{ now: Date }>`select clock_timestamp() as now`.execute(db);
  let isDone = false;
  const done = run().finally(() => {
    isDone = true;
  });
  await waitFor('the question for writers', () => {
    if (isDone) throw new Error('nobody was waited for');
    return hasActivity(
      db,
      sql`query like '%pg_locks%environment_uses%' and pid <> pg_backend_pid() and query_start > ${rows[0]?.now}`,
    );
  });
  return { done };
}

/** Resolves when a statement that writes single users waits for a locked row. */
export async function untilStatementWaits({ db }: Watched): Promise<void> {
  const waits = sql`wait_event_type = 'Lock' and datname = current_database() and query like '%single records of users%'`;
  await waitFor('the statement that waits for the row', () => hasActivity(db, waits));
}

async function hasActivity(db: Database, condition: RawBuilder<unknown>): Promise<boolean> {
  const { rows } = await sql<{ is: boolean }>`
    select exists (select from pg_stat_activity where ${condition}) as is`.execute(db);
  return rows[0]?.is === true;
}
