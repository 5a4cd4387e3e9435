import { mkdtemp, readdir, rm, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, expect, inject, test } from 'vitest';
import { embeddedPostgres } from '../../src/embedded-postgres/embedded-postgres.ts';
import type { FileStore } from '../../src/files/file-store.ts';
import { createFileSystemStore } from '../../src/files/file-system.ts';
import {
  checkMove,
  copyFiles,
  type MoveProgress,
  type MoveWish,
  measureTables,
  moveAll,
} from '../../src/move/move.ts';
import { openRetirement } from '../../src/postgres/stores/retirements.ts';
import { prepareDatabase } from '../../src/provide-database.ts';
import { manualLoad, runManually, startManually } from '../support/load-file.ts';
import { createEmptyDatabase, type TestDatabase } from '../support/postgres.ts';
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
      `select relname as name from pg_class where relnamespace = to_regnamespace('sluice') and relkind = 'r' order by 1`,
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

const silent: MoveProgress = { onRows: () => undefined, onFile: () => undefined };

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
test('ended in the middle of any table, nothing of the database is there, and the same command begins again, also after the source was marked', async () => {
  const target = await emptyTarget();
  const wish = await wishFor(target.url);
  for (const table of ['environments', 'events_2026_02', 'load_rejects']) {
    const stop = new AbortController();
    const onRows: MoveProgress['onRows'] = ({ name }) => {
      if (name === table) stop.abort(new Error('stopped here'));
    };
    const run = moveAll({ ...wish, signal: stop.signal }, t.databaseUrl, { ...silent, onRows });
    await expect(run).rejects.toThrow();
    expect(await readContents(target.url)).toEqual({});
    expect(await embeddedPostgres.readMovedMark(wish.dataDir)).toBeNull();
  }
  await embeddedPostgres.markMoved(wish.dataDir, {
    ...{ movedAt: '2026-11-20', to: target.url, settings: {}, isComplete: false },
  });
  await moveAll(wish, t.databaseUrl, silent);
  expect(await embeddedPostgres.readMovedMark(wish.dataDir)).toMatchObject({ isComplete: true });
  expect(withoutServer(await readContents(target.url))).toEqual(withoutServer(before));
});

// proves: move
test('a service that starts on the target meanwhile waits until the database is complete', async () => {
  const target = await emptyTarget();
  let started: Promise<void> | undefined;
  const onRows: MoveProgress['onRows'] = () => {
    started ??= prepareDatabase(target.url, false, log);
  };
  await moveAll(await wishFor(target.url), t.databaseUrl, { ...silent, onRows });
  await started;
  expect(withoutServer(await readContents(target.url))).toEqual(withoutServer(before));
});

// proves: move
test.each<[string, (name: string, url: string) => Promise<string>, string]>([
  [
    'it holds data of sluice',
    async (_, url) => {
      await prepareDatabase(url, false, log);
      return url;
    },
    'the database has a schema sluice already',
  ],
  ['it is the source', async () => t.databaseUrl, 'this is the server that the data comes from'],
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
