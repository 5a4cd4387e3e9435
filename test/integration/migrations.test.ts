import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { packageRoot } from '../../src/package-root.ts';
import { migrate, readMigrations } from '../../src/postgres/migrate.ts';
import { createEmptyDatabase, type TestDatabase } from '../support/postgres.ts';
import { startSystemPostgres, systemPostgres } from '../support/system-postgres.ts';

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
  test('many processes that start at once apply each of them once', async () => {
    const starters = await Promise.all(Array.from({ length: 4 }, connect));
    const applied = await Promise.all(starters.map((client) => migrate(client)));
    const names = (await readMigrations()).map(({ name }) => name);
    expect(applied.flat()).toEqual(names);
    expect(applied.filter((some) => some.length > 0)).toHaveLength(1);
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
});

test('the schema type is what the migrations make', () => {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--import', 'tsx', join(packageRoot, 'tools/generate-schema.ts'), '--verify'],
    { cwd: packageRoot, encoding: 'utf8' },
  );
  expect(status, `${stdout}${stderr}`).toBe(0);
});

describe('the block-range index on when a profile changed', () => {
  const found = async (client: pg.Client): Promise<string[]> => {
    const { rows } = await client.query<{ index: string }>(
      "select indexname as index from pg_indexes where schemaname = 'sluice' and indexname like '%_updated_idx' order by 1",
    );
    return rows.map(({ index }) => index);
  };

  test.skipIf(systemPostgres === undefined)(
    'is not there on PostgreSQL 15, where it would keep updates from being made in place',
    async ({ skip }) => {
      const server = await startSystemPostgres();
      const client = new pg.Client({ connectionString: server.url });
      await client.connect();
      try {
        const { rows } = await client.query('show server_version_num');
        if (Number(rows[0].server_version_num) >= 160_000)
          return skip('the PostgreSQL of this machine is newer');
        await migrate(client);
        expect(await found(client)).toEqual([]);
        await client.query("insert into sluice.users (environment_id, user_id) values (1, 'u')");
        await client.query('update sluice.users set metadata = \'{"a":1}\', updated_at = now()');
        await client.query('select pg_stat_force_next_flush()');
        const stats = await client.query(
          "select n_tup_upd, n_tup_hot_upd from pg_stat_user_tables where schemaname = 'sluice' and relname = 'users'",
        );
        expect(stats.rows).toEqual([{ n_tup_upd: '1', n_tup_hot_upd: '1' }]);
      } finally {
        await client.end();
        await server.stop();
      }
    },
  );
});
