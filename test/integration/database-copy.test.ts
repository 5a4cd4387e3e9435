import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { writeBackupFile } from '../../src/backup/backup.ts';
import {
  connectForCopy,
  type DatabaseSource,
  inOrder,
  readDatabase,
} from '../../src/postgres/database-copy/read-database.ts';
import { DatabaseWriter } from '../../src/postgres/database-copy/write-database.ts';
import { connectTo } from '../support/connect.ts';
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from '../support/postgres.ts';

let from: TestDatabase;
let to: TestDatabase;
let source: DatabaseSource;
const closing: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  from = await createTestDatabase();
  to = await createEmptyDatabase();
  await connectTo(from.url, (client) => client.query(rows));
  source = await readDatabase(from.url);
});
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});
afterAll(async () => {
  await source.close();
  await from.drop();
  await to.drop();
});

/** Something of every kind: texts that COPY escapes, months, one on its way out, what somebody added, work under way. */
const rows = `
  insert into sluice.environments (name, app_token) values ('default', 'NX-ABCDEFGH'), ('other', 'NX-ABCDEFG0');
  insert into sluice.users (environment_id, user_id, company_id, metadata)
    select 1, 'user ' || n || E'\\t\\n\\\\.', 'é', jsonb_build_object('n', n, 'text', E'\\\\N "quoted"', 'big', 1e300)
    from generate_series(1, 5000) n;
  alter table sluice.users add column "its own" numeric(10, 2);
  update sluice.users set "its own" = 1.5 where user_id like '%7%';
  create table sluice.added (a text[], b interval);
  insert into sluice.added values (array['x', null], '1 month 2 days');
  select sluice.ensure_events_partition('2024-01-15Z'), sluice.ensure_events_partition('2024-02-15Z');
  insert into sluice.events (environment_id, event_id, event_name, user_id, source, inserted_at)
    select 1, 'e' || n, 'opened', 'u', 'api', '2024-01-20Z'::timestamptz + n * interval '1 hour' from generate_series(1, 500) n;
  create table sluice.retired_events_1 (like sluice.events including all);
  insert into sluice.retired_events_1 select * from sluice.events limit 7;
  insert into sluice.loads
    (job_id, environment_id, type, entity, filename, file_size, sha256, file_format, total_rows, chunk_count, plan_cursor, status)
    select gen_random_uuid(), 1, 'import', 'users', 'a', 1, sha256(''), 'ndjson', 1, 1, '700:700:', 'processing' from generate_series(1, 3);
  update sluice.loads set amends = 3 where load_id = 1;
  insert into sluice.aliases (environment_id, alias, user_id, given_to, load_id)
    values (1, 'phone', 'u', 'web', 2), (1, 'web', 'u', 'u', 3);
  insert into sluice.tasks (kind, subject_id, environment_id, attempt, lease_until, notified_at)
    values ('chunk', 1, 1, 2, now() + interval '1 hour', now());
  insert into sluice.workers (worker_id, host, pid) values (gen_random_uuid(), 'h', 1);
  select nextval('sluice.lane_positions');`;

/** Bytes and their hash, by table. */
async function contents(database: DatabaseSource): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const table of database.shape.tables) {
    const hash = createHash('sha256');
    for await (const bytes of database.copyOut(table)) hash.update(bytes);
    found[table.name] = hash.digest('hex');
  }
  return found;
}

const listTables = (client: pg.ClientBase) =>
  client.query(`select relname from pg_class where relnamespace = to_regnamespace('sluice')`);

/** The statements, with the constraints that they hold. */
async function indexesOf({ client }: DatabaseSource): Promise<unknown[]> {
  const { rows } = await client.query(`
    select pg_get_indexdef(indexrelid) as index, pg_get_constraintdef(c.oid) as holds, indisvalid
    from pg_index
    left join pg_constraint c on conindid = indexrelid and conrelid = indrelid
    join pg_class t on t.oid = indrelid
    where t.relnamespace = 'sluice'::regnamespace
    order by 1, 2`);
  return rows;
}

describe('the copy of a database', () => {
  // proves: backup-moment, move, identities
  test('holds what one snapshot held, whatever is written and made meanwhile, and says it in the same bytes', async () => {
    await connectTo(from.url, async (client) => {
      await client.query(`insert into sluice.users (environment_id, user_id) values (1, 'later')`);
      await client.query(`select sluice.ensure_events_partition('2024-05-15Z')`);
    });
    const target = await connectForCopy(to.url);
    closing.push(() => target.end());
    const writer = await DatabaseWriter.begin(target, source.shape, 0);
    expect((await connectTo(to.url, listTables)).rows).toEqual([]);
    for (const table of source.shape.tables) await writer.write(table, source.copyOut(table));
    await writer.finish();

    const copy = await readDatabase(to.url);
    closing.push(() => copy.close());
    expect(copy.shape.tables.map(({ name }) => name)).toEqual(source.shape.tables.map(({ name }) => name));
    expect(copy.shape.sequences).toEqual(source.shape.sequences);
    expect(copy.shape.migrations).toEqual(source.shape.migrations);
    const [expected, found] = [await contents(source), await contents(copy)];
    const differing = Object.keys(expected).filter((name) => expected[name] !== found[name]);
    expect(differing.sort()).toEqual(['change_log', 'tasks', 'workers']);
    expect(await indexesOf(copy)).toEqual(await indexesOf(source));
    const { rows } = await copy.client.query(`
      select
        (select count(*)::int from users) as users,
        (select sum("its own") from users) as own,
        (select count(*)::int from events) as events,
        (select count(*)::int from events_2024_01) as january,
        (select amends::int from loads where load_id = 1) as amends,
        (select attempt from tasks where lease_until is null and notified_at is null) as attempt,
        (select b::text from added) as added,
        person_of(1, 'phone') as person`);
    expect(rows).toEqual([
      {
        users: 5000,
        own: '2032.50',
        events: 500,
        january: 287,
        amends: 3,
        attempt: 2,
        added: '1 mon 2 days',
        person: 'u',
      },
    ]);
  });

  test('takes new rows with the next numbers', async () => {
    await connectTo(to.url, async (client) => {
      const { rows } = await client.query(
        `insert into sluice.environments (name, app_token) values ('third', 'NX-ABCDEFG1') returning environment_id`,
      );
      expect(rows).toEqual([{ environment_id: 3 }]);
      const lane = await client.query(`select nextval('sluice.lane_positions')::int as n`);
      expect(lane.rows).toEqual([{ n: 5 }]);
    });
  });

  test('is refused where the source has a migration that this version lacks, or another text of one', async () => {
    const { shape } = source;
    const empty = await createEmptyDatabase();
    closing.push(() => empty.drop());
    const begin = async (migrations: typeof shape.migrations): Promise<unknown> => {
      const client = await connectForCopy(empty.url);
      return DatabaseWriter.begin(client, { ...shape, migrations }).finally(() => client.end());
    };
    const later = [...shape.migrations, { name: '0999_later.sql', digest: '' }];
    await expect(begin(later)).rejects.toThrow('is not known');
    await expect(begin(shape.migrations.map(({ name }) => ({ name, digest: 'x' })))).rejects.toThrow(
      'another text',
    );
  });

  test('no table is removed while it is read, and no month is taken out of the events', async () => {
    const other = new pg.Client({ connectionString: from.url });
    await other.connect();
    closing.push(() => other.end());
    await other.query(`set lock_timeout = '50ms'`);
    await expect(other.query('drop table sluice.retired_events_1')).rejects.toThrow('lock timeout');
    await expect(other.query('lock table sluice.event_retirements in exclusive mode')).rejects.toThrow(
      'LOCK TABLE',
    );
  });

  test('what others refer to comes first', () => {
    const named = (name: string) => ({ name, columns: [], kind: 'table' as const, rowsExpected: 0 });
    const order = inOrder(['a', 'b', 'c'].map(named), [
      { from: 'a', to: 'c' },
      { from: 'b', to: 'a' },
    ]);
    expect(order.map(({ name }) => name)).toEqual(['c', 'a', 'b']);
  });
});

describe('a backup', () => {
  test('never takes the place of a file that appeared while it was made', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-backup-'));
    closing.push(() => rm(folder, { recursive: true }));
    const path = join(folder, 'nightly.tar.gz');
    const backup = writeBackupFile({ databaseUrl: from.url, files: null, filesAt: '' }, path, () =>
      writeFileSync(path, 'of somebody else'),
    );
    await expect(backup).rejects.toThrow('made by somebody else meanwhile');
    expect(await readdir(folder)).toEqual(['nightly.tar.gz']);
    expect(await readFile(path, 'utf8')).toBe('of somebody else');
  });
});
