import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { packageRoot } from '../../src/base/package-root.ts';
import { migrate, readMigrations } from '../../src/postgres/migrate.ts';
import { createEmptyDatabase, type TestDatabase } from '../support/servers/postgres.ts';

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
  test('many processes that start at once apply each migration once', async () => {
    const starters = await Promise.all(Array.from({ length: 4 }, connect));
    const applied = await Promise.all(starters.map((client) => migrate(client)));
    const names = (await readMigrations()).map(({ name }) => name);
    expect(applied.flat()).toEqual(names);
    expect(applied.filter((some) => some.length > 0)).toHaveLength(1);
  });

  test('a migration that was edited after it was applied is refused, and nothing is applied', async () => {
    const [first, ...others] = await readMigrations();
    if (first === undefined) throw new Error('there are no migrations');
    const later = { name: '9999_later.sql', sql: 'create table sluice.later ()', digest: 'later' };
    const client = await connect();
    await expect(migrate(client, [{ ...first, digest: 'another' }, ...others, later])).rejects.toThrow(
      /^migration 0001_create_environments\.sql was edited .* Run `sluice export --out takeout --everything` with the version/,
    );
    const { rows } = await client.query("select to_regclass('sluice.later') as later");
    expect(rows[0].later).toBeNull();
  });
});

test('the schema type matches the migrations', () => {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [
      ...['--import', 'tsx', join(packageRoot, 'tools/generate-schema.ts')],
      ...['--verify', `--database=${database.url}`],
    ],
    { cwd: packageRoot, encoding: 'utf8' },
  );
  expect(status, `${stdout}${stderr}`).toBe(0);
});
