import { mkdtemp, readdir, rm, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import pg from 'pg';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, expect, inject, test } from 'vitest';
import { writeBackup } from '../../src/backup/backup.ts';
import { embeddedPostgres } from '../../src/embedded-postgres/embedded-postgres.ts';
import type { FileStore } from '../../src/files/file-store.ts';
import { createFileSystemStore } from '../../src/files/file-system.ts';
import { copyFiles } from '../../src/move/copy-files.ts';
import {
  checkMove,
  type MoveProgress,
  type MoveWish,
  measureTables,
  moveAll,
  readProgress,
} from '../../src/move/move.ts';
import { openRetirement } from '../../src/postgres/stores/retirements.ts';
import { prepareDatabase } from '../../src/provide-database.ts';
import { manualLoad, runManually, startManually } from '../support/load-file.ts';
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { databaseUrl, runOn } from '../support/postgres-server.ts';
import { openTestSystem, type TestSystem } from '../support/system.ts';

const log = pino({ level: 'silent' });
let t: TestSystem;
let waiting: string;
let before: Contents;
const cleanups: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  t = await openTestSystem({ queue: 'postgres', storage: 'folder' });
  const { environmentId } = t.environment;
  const start = (text: string) => startManually(t.system, environmentId, text);
  const done = await start(
    [
      {
        user_id: 'ä\u{1f600}\\N',
        company_id: 'Ünï "c"',
        metadata: { text: 'tab\t, \\n and\nline', n: 1e-7, deep: { x: [null] } },
      },
      { user_id: '\\.', metadata: {} },
      { user_id: '', metadata: { refused: true } },
      {
        event_type: 'track',
        user_id: 'nobody',
        event_name: 'köpte',
        event_id: 'e-1',
        inserted_at: '2026-02-03T04:05:06.123456Z',
      },
      {
        event_type: 'page_view',
        user_id: '\\.',
        inserted_at: '2024-12-31T23:59:59.999999Z',
        url: 'https://example.com/ü?q=1',
      },
    ]
      .map((record) => JSON.stringify(record))
      .join('\n'),
  );
  expect(await runManually(done)).toMatchObject({ status: 'completed', tally: { rejected: 1 } });
  await t.system.pool.query(`
    insert into sluice.signing_keys (purpose, secret) values ('links', decode(repeat('ab', 32), 'hex'));
    insert into sluice.schedules (environment_id, schedule_name, considered_until) values (${environmentId}, 'nightly', 'infinity');
    update sluice.loads set plan_horizon = '123456', plan_since = now()`);
  const retired = await openRetirement(t.system.pool, '2023-01-01');
  await t.system.pool.query(
    `insert into sluice.${retired.table} select * from sluice.events where event_id = 'e-1'`,
  );
  // Accepted, begun by a worker that is gone, and not done.
  waiting = (await start('{"user_id":"later","metadata":{"a":1}}')).jobId;
  await t.system.pool.query(
    `update sluice.tasks set attempt = 1, lease_until = now() + interval '1 hour', notified_at = now(), worker = 'gone'`,
  );
  // It would be written down in the middle of a test.
  await t.system.rates.flush();
  before = await readContents(t.databaseUrl);
}, 60_000);
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});
afterAll(() => t?.close());

/** Rows of each table as text, in an order of their own. */
type Contents = Readonly<Record<string, readonly string[]>>;

async function readContents(url: string): Promise<Contents> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ name: string }>(
      `select relname as name from pg_class where relnamespace = 'sluice'::regnamespace and relkind = 'r' order by 1`,
    );
    const contents: Record<string, string[]> = {};
    for (const { name } of rows) {
      const found = await client.query<{ line: string }>(
        `select to_jsonb(r)::text as line from sluice.${name} r order by 1`,
      );
      contents[name] = found.rows.map(({ line }) => line);
    }
    return contents;
  } finally {
    await client.end();
  }
}

/** Of the server that it came from, and put right by the end of a move. */
function withoutServer({ tasks, workers, loads, migrations, ...rest }: Contents): Contents {
  return { ...rest, loads: (loads ?? []).map((line) => line.replace('"123456"', '"0"')) };
}

async function emptyTarget(): Promise<TestDatabase> {
  const target = await createEmptyDatabase();
  cleanups.push(target.drop);
  return target;
}

async function wishFor(url: string, signal: AbortSignal = new AbortController().signal): Promise<MoveWish> {
  const dataDir = await mkdtemp(join(tmpdir(), 'sluice-moved-'));
  cleanups.push(() => rm(dataDir, { recursive: true, force: true }));
  return { dataDir, from: t.config, to: { ...t.config, databaseUrl: url }, log, signal };
}

const silent: MoveProgress = { onRows: () => undefined, onTable: () => undefined, onFile: () => undefined };

// proves: move
test('every row of every table arrives, numbers go on, and what was under way waits to be claimed; the source is as it was', async () => {
  const target = await emptyTarget();
  const wish = await wishFor(target.url);
  expect((await checkMove(wish, t.databaseUrl)).filter(({ status }) => status === 'failed')).toEqual([]);
  const sizes = await measureTables(t.databaseUrl);
  const { tables } = await moveAll(wish, t.databaseUrl, silent);
  expect(sizes).toEqual({ tables: tables.length, bytes: expect.any(Number) });

  const after = await readContents(target.url);
  expect(withoutServer(after)).toEqual(withoutServer(before));
  expect(Object.values(after).flat().length).toBeGreaterThan(40);
  expect(await readContents(t.databaseUrl)).toEqual(before);
  expect(tables.map(({ name }) => name).sort()).toEqual(
    Object.keys(before).filter((name) => name !== 'migrations'),
  );
  expect(await embeddedPostgres.readMovedMark(wish.dataDir)).toMatchObject({
    to: expect.stringContaining('sluice:***@'),
  });
  await expect(embeddedPostgres.start({ dataDir: wish.dataDir, log })).rejects.toThrow('set DATABASE_URL');
  await prepareDatabase(target.url, true, log);

  const system = t.openAnother({ databaseUrl: target.url });
  try {
    const { environmentId } = t.environment;
    const load = await runManually(await manualLoad(system, environmentId, waiting));
    expect(load).toMatchObject({ status: 'completed', tally: { inserted: 1 } });
    await system.pool.query(
      `insert into sluice.environments (name, app_token) values ('next', 'NX-00000000')`,
    );
    const { rows } = await system.pool.query(`select max(environment_id) as id from sluice.environments`);
    expect(rows[0]).toEqual({ id: t.environment.environmentId + 1 });
  } finally {
    await system.close();
  }
});

// proves: move
test('ended in the middle of any table, the same move goes on: what had arrived is compared and not copied again', async () => {
  const target = await emptyTarget();
  const [wish, stopped] = [await wishFor(target.url), new Error('stopped here')];
  const arrived: string[] = [];
  for (const table of ['environments', 'events_2026_02', 'loads', 'load_rejects']) {
    const stop = new AbortController();
    const onRows: MoveProgress['onRows'] = ({ name }) => {
      if (name === table) stop.abort(stopped);
    };
    const onTable: MoveProgress['onTable'] = ({ name, earlier }) => {
      expect(earlier, name).toBe(arrived.includes(name));
      if (!earlier) arrived.push(name);
    };
    const run = moveAll({ ...wish, signal: stop.signal }, t.databaseUrl, { ...silent, onRows, onTable });
    await expect(run).rejects.toThrow();
    expect(arrived).not.toContain(table);
    expect(await readProgress(target.url)).toBe('part');
    await expect(prepareDatabase(target.url, true, log)).rejects.toThrow('is not complete');
  }
  const backup = writeBackup({ databaseUrl: target.url, files: null, filesAt: '' }, new PassThrough());
  await expect(backup).rejects.toThrow('is not complete');
  await moveAll(wish, t.databaseUrl, silent);
  expect(await readProgress(target.url)).toBe('all');
  expect(withoutServer(await readContents(target.url))).toEqual(withoutServer(before));
});

// proves: move
test('of a source that was written to between two runs everything is copied anew', async () => {
  const target = await emptyTarget();
  const stop = new AbortController();
  const first = await wishFor(target.url, stop.signal);
  const onTable: MoveProgress['onTable'] = ({ name }) => {
    if (name === 'users') stop.abort(new Error('stopped here'));
  };
  await expect(moveAll(first, t.databaseUrl, { ...silent, onTable })).rejects.toThrow('stopped here');
  await t.system.pool.query(`update sluice.users set metadata = '{"since": true}' where user_id = '\\.'`);
  const since = await readContents(t.databaseUrl);
  expect(since).not.toEqual(before);
  const { tables } = await moveAll(await wishFor(target.url), t.databaseUrl, silent);
  expect(tables.every(({ earlier }) => !earlier)).toBe(true);
  expect(withoutServer(await readContents(target.url))).toEqual(withoutServer(since));
  before = since;
});

// proves: move
test('a table whose rows arrive as others is refused, and nothing of it is kept', async () => {
  const target = await emptyTarget();
  const wish = await wishFor(target.url);
  const stop = new AbortController();
  let altered: Promise<void> | undefined;
  const onTable: MoveProgress['onTable'] = ({ name }) => {
    if (name !== 'companies') return;
    altered = runOn(
      target.url,
      `create function meddle() returns trigger language plpgsql as 'begin new.metadata := new.metadata - ''n''; return new; end';
       create trigger meddle before insert on sluice.users for each row execute function meddle()`,
    );
    stop.abort(new Error('to be altered'));
  };
  const first = moveAll({ ...wish, signal: stop.signal }, t.databaseUrl, { ...silent, onTable });
  await expect(first).rejects.toThrow('to be altered');
  await altered;
  await expect(moveAll(wish, t.databaseUrl, silent)).rejects.toThrow(
    /^users has 2 rows .* in the target, and 2 /,
  );
  expect((await readContents(target.url))['users']).toEqual([]);
  expect(await embeddedPostgres.readMovedMark(wish.dataDir)).toBeNull();
});

// proves: move
test.each<[string, (name: string, url: string) => Promise<string>, string]>([
  [
    'it holds data of sluice',
    async (_, url) => {
      await prepareDatabase(url, false, log);
      await runOn(url, `insert into sluice.environments (name, app_token) values ('mine', 'NX-00000000')`);
      return url;
    },
    'the database has data of sluice: environments',
  ],
  ['it is the source', async () => t.databaseUrl, 'this is the server that the data comes from'],
  [
    'it is filled from elsewhere',
    async (_, url) => {
      const stop = AbortSignal.abort(new Error('stopped'));
      const other = await createTestDatabase();
      cleanups.push(other.drop);
      await expect(moveAll(await wishFor(url, stop), other.url, silent)).rejects.toThrow();
      return url;
    },
    'filled by a move from another',
  ],
  [
    'its encoding cannot hold every text',
    async (name) => {
      const server = inject('postgresUrl');
      await runOn(server, `create database ${name}_latin encoding 'LATIN1' template template0 locale 'C'`);
      cleanups.push(() => runOn(server, `drop database ${name}_latin`));
      return databaseUrl(server, `${name}_latin`);
    },
    'the database is LATIN1',
  ],
  [
    'its role may not create schemas',
    async (name, url) => {
      await runOn(url, `revoke create, temporary on database ${name} from public, sluice`);
      return url;
    },
    'lacks create and temporary',
  ],
  [
    'a sluice runs on it',
    async (_, url) => {
      const client = new pg.Client({ connectionString: url, application_name: 'sluice serve' });
      await client.connect();
      cleanups.push(() => client.end());
      return url;
    },
    'a sluice runs on the database: sluice serve',
  ],
])('a target is refused before anything is written if %s', async (_, prepare, reason) => {
  const target = await emptyTarget();
  const url = await prepare(new URL(target.url).pathname.slice(1), target.url);
  const failed = (await checkMove(await wishFor(url), t.databaseUrl)).filter(
    ({ status }) => status === 'failed',
  );
  expect(failed.map(({ found }) => found)).toContainEqual(expect.stringContaining(reason));
  expect(failed.every(({ advice }) => advice !== null)).toBe(true);
});

// proves: move
test('files arrive under their names, those that are there in another length anew, and what was never completed does not', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-moved-files-'));
  cleanups.push(() => rm(folder, { recursive: true, force: true }));
  const { filesDir } = t.config;
  const [from, to] = [createFileSystemStore(filesDir), createFileSystemStore(folder)];
  await (await from.create()).write(Buffer.from('never completed'));
  const left = (await readdir(filesDir, { recursive: true })).filter(
    (name) => /^[^/]+\/.*-/.test(name) && !name.startsWith('tmp'),
  );
  const { signal } = new AbortController();
  const copy = () => copyFiles(filesDir, from, to, () => undefined, signal);
  expect(await copy()).toMatchObject({ files: left.length, earlier: 0 });
  await truncate(join(folder, left[0] ?? ''), 1);
  expect(await copy()).toMatchObject({ files: left.length, earlier: left.length - 1 });
  const arrived = (await readdir(folder, { recursive: true })).filter((name) => /^[^/]+\/.*-/.test(name));
  expect(arrived.sort()).toEqual(left.sort());
});

test('a file that cannot be written ends the copy, and nothing is written any more when that is said', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-moved-files-'));
  cleanups.push(() => rm(folder, { recursive: true, force: true }));
  const { filesDir } = t.config;
  const [from, to] = [createFileSystemStore(filesDir), createFileSystemStore(folder)];
  for (let number = 0; number < 20; number++) {
    const writer = await from.create();
    await writer.write(Buffer.alloc(1_000_000));
    await writer.commit();
  }
  let [begun, open] = [0, 0];
  const failing: FileStore = {
    ...to,
    async createAs(ref) {
      if (++begun === 3) throw new Error('no room');
      open++;
      const writer = await to.createAs(ref);
      const ended = <T>(work: Promise<T>): Promise<T> => work.finally(() => open--);
      return {
        ref,
        write: (bytes) => writer.write(bytes),
        commit: () => ended(writer.commit()),
        discard: () => ended(writer.discard()),
      };
    },
  };
  const copying = copyFiles(filesDir, from, failing, () => undefined, new AbortController().signal);
  await expect(copying).rejects.toThrow('no room');
  expect(open).toBe(0);
  expect(begun).toBeLessThan(20);
});
