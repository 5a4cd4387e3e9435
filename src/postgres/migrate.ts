import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { sql } from 'kysely';
import type { ClientBase } from 'pg';
import type { Logger } from 'pino';
import { Fault } from '../base/errors.ts';
import { packageRoot } from '../base/package-root.ts';
import type { Database } from './database.ts';

/** Advisory lock (ASCII: SLUI) of the one process that migrates. */
const advisoryLock = 0x534c5549;
const oldestServer = 150_000;

interface Migration {
  readonly name: string;
  readonly sql: string;
  readonly digest: string;
}

/** The core's migrations, then those of each capability, named `<folder>/0001_….sql`. */
export async function readMigrations(): Promise<Migration[]> {
  const migrations = await readSequence(join(packageRoot, 'sql', 'migrations'), '');
  const capabilities = join(packageRoot, 'src', 'capabilities');
  for (const name of (await filesOf(capabilities)).sort())
    migrations.push(...(await readSequence(join(capabilities, name, 'sql'), `${name}/`)));
  return migrations;
}

async function filesOf(folder: string): Promise<string[]> {
  return existsSync(folder) ? readdir(folder) : [];
}

async function readSequence(folder: string, prefix: string): Promise<Migration[]> {
  const names = (await filesOf(folder)).filter((name) => /^\d{4}_[a-z0-9_]+\.sql$/.test(name)).sort();
  return Promise.all(
    names.map(async (name) => {
      const sql = await readFile(join(folder, name), 'utf8');
      return { name: `${prefix}${name}`, sql, digest: createHash('sha256').update(sql).digest('hex') };
    }),
  );
}

function hasLaterMigration(name: string, ours: readonly Migration[]): boolean {
  return ours.some((each) => dirname(each.name) === dirname(name) && each.name > name);
}

/** @throws Fault if an applied migration was edited, or PostgreSQL is older than 15 */
export async function migrate(client: ClientBase, migrations?: readonly Migration[]): Promise<string[]> {
  await requireServer(client);
  const sequence = migrations ?? (await readMigrations());
  await client.query('begin');
  try {
    await lockSchema(client);
    const applied = await applyMigrations(client, sequence);
    await client.query('commit');
    return applied;
  } catch (error) {
    // If the connection is lost, this statement fails, but the server rolls back by itself.
    await client.query('rollback').catch(() => undefined);
    throw error;
  }
}

async function lockSchema(client: ClientBase): Promise<void> {
  await client.query('select pg_advisory_xact_lock($1)', [advisoryLock]);
}

async function requireServer(client: ClientBase): Promise<void> {
  const { rows } = await client.query<{ v: number }>(
    "select current_setting('server_version_num')::int as v",
  );
  const version = rows[0]?.v ?? 0;
  if (version < oldestServer) {
    throw new Fault(`PostgreSQL 15 or newer is needed; the server is ${Math.floor(version / 10_000)}`);
  }
}

async function applyMigrations(client: ClientBase, migrations: readonly Migration[]): Promise<string[]> {
  await client.query(`
    create schema if not exists sluice;
    create table if not exists sluice.migrations (
      name text primary key,
      digest text not null,
      applied_at timestamptz not null default now()
    )`);
  const { rows } = await client.query<{ name: string; digest: string }>(
    'select name, digest from sluice.migrations',
  );
  const digests = new Map(rows.map((row) => [row.name, row.digest]));
  const applied: string[] = [];
  for (const migration of migrations) {
    const digest = digests.get(migration.name);
    if (digest === migration.digest) continue;
    if (digest !== undefined)
      throw new Fault(
        `migration ${migration.name} was edited after it had been applied. ${unreleasedAdvice}`,
      );
    await client.query(migration.sql);
    await client.query('insert into sluice.migrations (name, digest) values ($1, $2)', [
      migration.name,
      migration.digest,
    ]);
    applied.push(migration.name);
  }
  return applied;
}

export const unreleasedAdvice =
  'No release made this data. Run `sluice export --out takeout --everything` with the version that did, and `sluice import takeout` here, on an empty database.';

interface MigrationState {
  readonly pending: readonly string[];
  /** Migrations that a newer program applied. */
  readonly unknown: readonly string[];
  readonly edited: readonly string[];
  /**
   * True if no release has this schema. Releases do not rename, edit or remove earlier migrations.
   */
  readonly unreleased: boolean;
}

/**
 * Reads which migrations are applied and pending, without changing anything. In a database that was
 * never migrated, all migrations are pending.
 */
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
  const names = new Set(ours.map(({ name }) => name));
  const unknown = applied.filter(({ name }) => !names.has(name)).map(({ name }) => name);
  const edited = ours
    .filter(({ name, digest }) => (digests.get(name) ?? digest) !== digest)
    .map(({ name }) => name);
  return {
    pending: ours.filter(({ name }) => !digests.has(name)).map(({ name }) => name),
    unknown,
    edited,
    unreleased: edited.length > 0 || unknown.some((name) => hasLaterMigration(name, ours)),
  };
}

const lockTimeout = '2s';

/** A table is analyzed if more than `staleRows` plus `staleShare` of its rows have changed. */
const staleShare = 0.2;
const staleRows = 1_000;

/**
 * autovacuum would analyze the tables only after a minute. Until then, a query may take hours,
 * because the planner assumes that a recently empty table is small. A failed analysis is left to
 * autovacuum.
 */
export async function analyzeStale(db: Database, log: Logger): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select format('%I.%I', schemaname, stat.relname) as name
    from pg_stat_user_tables stat
    join pg_class on pg_class.oid = relid
    where schemaname = 'sluice'
      and (stat.relname in ('users', 'companies') or relispartition)
      and n_mod_since_analyze > ${staleRows} + ${staleShare} * greatest(reltuples, 0)`.execute(db);
  for (const { name } of rows) {
    try {
      await db.transaction().execute(async (transaction) => {
        await sql`select set_config('lock_timeout', ${lockTimeout}, true)`.execute(transaction);
        await sql`analyze ${sql.raw(name)}`.execute(transaction);
      });
    } catch (error) {
      log.debug({ err: error, table: name }, 'a table could not be analyzed');
    }
  }
}
