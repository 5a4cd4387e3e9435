import type pg from 'pg';
import * as profiles from '../../src/ingest/profile-store.ts';
import type { Guard } from '../../src/postgres/guard.ts';

/** Of a process that knows of no capability that its environments use. */
const plain: Guard = { environments: [], uses: [], compose: (query) => query };

/** Writes users and the companies they name, as single records. */
export function writeUsers(
  connection: pg.Pool | pg.PoolClient,
  users: readonly profiles.UserRow[],
  companies: readonly profiles.ProfileRow[],
): Promise<void> {
  const guard = { ...plain, environments: [...new Set(users.map(({ environmentId }) => environmentId))] };
  return profiles.writeUsers(connection, users, companies, guard);
}
