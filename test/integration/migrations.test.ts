import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { packageRoot } from '../../src/package-root.ts';
import { migrate, readMigrations } from '../../src/postgres/migrate.ts';
import { readMigrationState } from '../../src/postgres/migration-state.ts';
import { createEmptyDatabase, type TestDatabase } from '../support/postgres.ts';

let database: TestDatabase;
const clients: pg.Client[] = [];

async function connect(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  clients.push(client);
  return client;
}

beforeAll(async () => {
  database = await createEmptyDatabase();
});
afterEach(async () => {
  for (const client of clients.splice(0)) await client.end();
});
afterAll(() => database.drop());

describe('migrations', () => {
  test('an empty database is said to lack them', async () => {
    const names = (await readMigrations()).map(({ name }) => name);
    expect(await readMigrationState(await connect())).toEqual({ pending: names, unknown: [], edited: [] });
  });

  test('many processes that start at once apply each of them once', async () => {
    const starters = await Promise.all(Array.from({ length: 4 }, connect));
    const applied = await Promise.all(starters.map((client) => migrate(client)));
    const names = (await readMigrations()).map(({ name }) => name);
    expect(applied.flat()).toEqual(names);
    expect(applied.filter((some) => some.length > 0)).toHaveLength(1);
  });

  test('the second time there is nothing to do', async () => {
    const client = await connect();
    expect(await migrate(client)).toEqual([]);
    expect(await readMigrationState(client)).toEqual({ pending: [], unknown: [], edited: [] });
  });

  test('one that was edited after it had been applied is refused, and nothing is applied', async () => {
    const [first, ...others] = await readMigrations();
    if (first === undefined) throw new Error('there are no migrations');
    const later = { name: '9999_later.sql', sql: 'create table sluice.later ()', digest: 'later' };
    const client = await connect();
    await expect(migrate(client, [{ ...first, digest: 'another' }, ...others, later])).rejects.toThrow(
      '0001_create_environments.sql was edited',
    );
    const { rows } = await client.query("select to_regclass('sluice.later') as later");
    expect(rows[0].later).toBeNull();
  });

  test('one that fails leaves none of its round behind', async () => {
    const known = await readMigrations();
    const good = { name: '9998_good.sql', sql: 'create table sluice.good ()', digest: 'good' };
    const bad = { name: '9999_bad.sql', sql: 'create table sluice.bad (', digest: 'bad' };
    const client = await connect();
    await expect(migrate(client, [...known, good, bad])).rejects.toThrow('syntax error');
    const { rows } = await client.query("select to_regclass('sluice.good') as good");
    expect(rows[0].good).toBeNull();
  });
});

test('keys that might do everything before there were deletions may delete, others may not', async () => {
  const empty = await createEmptyDatabase();
  const client = new pg.Client({ connectionString: empty.url });
  await client.connect();
  try {
    const known = await readMigrations();
    const before = known.filter(({ name }) => name < '0012_create_deletions.sql');
    await migrate(client, before);
    await client.query("insert into sluice.environments (name, app_token) values ('e', 'NX-12345678')");
    await client.query(`
      insert into sluice.api_keys (key_id, environment_id, label, digest, scopes)
      select key_id, environment_id, 'x', sha256('x'), scopes::text[]
      from sluice.environments
      cross join (values ('all', '{ingest,import,export,read}'), ('some', '{ingest,read}')) k (key_id, scopes)`);
    await migrate(client, known);
    const { rows } = await client.query('select key_id, scopes from sluice.api_keys order by key_id');
    expect(rows).toEqual([
      { key_id: 'all', scopes: ['ingest', 'import', 'export', 'read', 'delete'] },
      { key_id: 'some', scopes: ['ingest', 'read'] },
    ]);
  } finally {
    await client.end();
    await empty.drop();
  }
});

test('the schema type is what the migrations make', () => {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--import', 'tsx', join(packageRoot, 'tools/generate-schema.ts'), '--verify'],
    { cwd: packageRoot, encoding: 'utf8' },
  );
  expect(status, `${stdout}${stderr}`).toBe(0);
});
