import type { ClientBase } from 'pg';
import { readMigrations } from './migrate.ts';

/** How the schema of a database stands to this program. */
export interface MigrationState {
  /** Names of migrations that the database lacks. */
  readonly pending: readonly string[];
  /** Names of those that it has and this program does not know: a newer program was here. */
  readonly unknown: readonly string[];
  /** Names of those that were applied with another text. */
  readonly edited: readonly string[];
}

/** Changes nothing. A database that was never migrated lacks them all. */
export async function readMigrationState(client: ClientBase): Promise<MigrationState> {
  const ours = await readMigrations();
  const table = await client.query<{ t: string | null }>(
    "select to_regclass('sluice.migrations')::text as t",
  );
  const applied = table.rows[0]?.t
    ? (await client.query<{ name: string; digest: string }>('select name, digest from sluice.migrations'))
        .rows
    : [];
  const digests = new Map(applied.map(({ name, digest }) => [name, digest]));
  const known = new Set(ours.map(({ name }) => name));
  return {
    pending: ours.filter(({ name }) => !digests.has(name)).map(({ name }) => name),
    unknown: applied.filter(({ name }) => !known.has(name)).map(({ name }) => name),
    edited: ours
      .filter(({ name, digest }) => (digests.get(name) ?? digest) !== digest)
      .map(({ name }) => name),
  };
}
