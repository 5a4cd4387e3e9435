import { sql } from 'kysely';
import type pg from 'pg';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { ExportWriter } from '../../src/export/context.ts';
import { previewExport } from '../../src/export/request-export.ts';
import type { Export } from '../../src/export/store.ts';
import { writeExport } from '../../src/export/write/write-export.ts';
import type { FileRef } from '../../src/files/file-store.ts';
import { parquetToNdjson } from '../../src/formats/parquet.ts';
import { records } from '../support/files/export-files.ts';
import { acceptDeletion } from '../support/servers/deletions.ts';
import { acceptExport, runExportTask } from '../support/servers/exports.ts';
import { systemOfFile } from '../support/servers/system.ts';

type Row = Readonly<Record<string, unknown>>;
interface Increment {
  readonly cursor: string;
  readonly users: readonly Row[];
  readonly companies: readonly Row[];
  readonly events: readonly Row[];
}

const t = await systemOfFile();
let environmentId: number;
const open: pg.PoolClient[] = [];

beforeAll(async () => {
  environmentId = t.environment.environmentId;
  await sql`select ensure_events_partition('2020-01-15'), ensure_events_partition(now())`.execute(
    t.system.db,
  );
});
afterEach(async () => {
  for (const client of open.splice(0)) {
    await client.query('rollback');
    client.release();
  }
  await clear();
});

/**
 * Removes all rows. TRUNCATE marks the log as incomplete up to now. A later cursor may begin before
 * this mark, because other databases keep transactions open. The mark is therefore removed.
 */
async function clear(): Promise<void> {
  await sql`truncate users, companies, events`.execute(t.system.db);
  await sql`update change_log set complete_since = 0, lineage = '{[0,)}'`.execute(t.system.db);
}

async function begin(): Promise<pg.PoolClient> {
  const client = await t.system.pool.connect();
  open.push(client);
  await client.query('begin');
  return client;
}

async function end(client: pg.PoolClient, how: 'commit' | 'rollback'): Promise<void> {
  await client.query(how);
  client.release();
  open.splice(open.indexOf(client), 1);
}

type Queries = Pick<pg.PoolClient, 'query'>;

const setUser = (
  id: string,
  metadata: object = {},
  by: Queries = t.system.pool,
  environment = environmentId,
) =>
  by.query(
    `insert into users (environment_id, user_id, metadata) values ($1, $2, $3)
     on conflict (environment_id, user_id) do update set metadata = excluded.metadata`,
    [environment, id, JSON.stringify(metadata)],
  );
const setCompanyOf = (id: string, company: string | null) =>
  t.system.pool.query('update users set company_id = $2 where user_id = $1', [id, company]);
const setCompany = (id: string, metadata: object = {}, by: Queries = t.system.pool) =>
  by.query(
    `insert into companies (environment_id, company_id, metadata) values ($1, $2, $3)
     on conflict (environment_id, company_id) do update set metadata = excluded.metadata`,
    [environmentId, id, JSON.stringify(metadata)],
  );
const addEvent = (id: string, by: Queries = t.system.pool, at = '2020-01-02') =>
  by.query(
    `insert into events (inserted_at, environment_id, event_id, event_name, user_id, source)
     values ($3, $1, $2, 'opened', 'u', 'test')`,
    [environmentId, id, at],
  );

async function remove(id: string, erases = false): Promise<void> {
  const client = await begin();
  if (erases) {
    await client.query(`set local sluice.erases = 'on'`);
    await client.query('delete from changes where key = $1', [id]);
  }
  await client.query('delete from users where user_id = $1', [id]);
  await end(client, 'commit');
}

async function runExport(
  body: object,
  write: ExportWriter = writeExport,
  environment = environmentId,
): Promise<Export> {
  const work = await acceptExport(t.system, environment, { compression: 'none', ...body });
  await runExportTask(t.system, work.exportId, write).catch(() => undefined);
  return work.look();
}

async function readFile(job: Export, name: string): Promise<string> {
  const file = job.files.find(({ filename }) => filename === name);
  if (file === undefined) return '';
  return (await t.system.files.readRange(file.ref as FileRef, 0, file.bytes)).toString();
}

async function incrementOf(job: Export): Promise<Increment> {
  expect(job).toMatchObject({ status: 'completed', failure: null });
  const manifest = JSON.parse(await readFile(job, 'manifest.json')) as { cursor: string };
  expect(manifest.cursor).toBe(job.cursor);
  const [users, companies, events] = await Promise.all(
    ['users', 'companies', 'events'].map(async (name) => records(await readFile(job, `${name}.ndjson`))),
  );
  return { cursor: manifest.cursor, users: users ?? [], companies: companies ?? [], events: events ?? [] };
}

/** Returns all rows since a cursor, or all rows if the cursor is `null`. */
const since = async (cursor: string | null, more: object = {}): Promise<Increment> =>
  incrementOf(await runExport({ since: cursor, ...more }));

const ids = ({ users, companies, events }: Increment) => ({
  users: users.map((row) => row['user_id']),
  companies: companies.map((row) => row['company_id']),
  events: events.map((row) => row['event_id']),
});

/** Returns rows of profiles without `first_seen_at` and `last_seen_at`. */
const withoutTimes = (rows: readonly Row[]) =>
  rows.map(({ first_seen_at: _, last_seen_at: __, ...row }) => row);

describe('an increment', () => {
  // proves: increments
  test('an increment has all rows committed since its cursor once, also of long transactions', async () => {
    await Promise.all([setUser('old'), setCompany('old'), addEvent('old')]);
    const long = await begin();
    const late = await begin();
    const undone = await begin();
    for (const [client, name] of [
      [long, 'long'],
      [late, 'late'],
      [undone, 'undone'],
    ] as const) {
      await setUser(name, {}, client);
      await setCompany(name, {}, client);
      await addEvent(name, client);
    }
    const first = await since(null);
    expect(ids(first)).toEqual({ users: ['old'], companies: ['old'], events: ['old'] });
    await end(late, 'commit');
    await end(undone, 'rollback');
    await setUser('new');
    // The time of this event is long before the cursor, but the event is stored after the cursor.
    await addEvent('new', t.system.pool, '2020-01-01');
    const second = await since(first.cursor);
    expect(ids(second)).toEqual({ users: ['late', 'new'], companies: ['late'], events: ['new', 'late'] });
    await setUser('new', { plan: 'pro' });
    await end(long, 'commit');
    const third = await since(second.cursor);
    expect(ids(third)).toEqual({ users: ['long', 'new'], companies: ['long'], events: ['long'] });
    expect(ids(await since(third.cursor))).toEqual({ users: [], companies: [], events: [] });
    expect(ids(await since(first.cursor))).toEqual({
      users: ['late', 'long', 'new'],
      companies: ['late', 'long'],
      events: ['new', 'late', 'long'],
    });
  });

  test('an increment combines with other filters, and its preview counts the same rows', async () => {
    await setUser('a');
    const { cursor } = await since(null);
    await setUser('b');
    await setUser('c');
    const body = { since: cursor, exclusions: 'user:c', event_type: 'users' };
    expect(ids(await since(cursor, body)).users).toEqual(['b']);
    expect(await previewExport(t.system, environmentId, body)).toMatchObject({ files: [{ rows: 1 }] });
  });

  // proves: increments
  test('an increment that a second worker starts again has the cursor of its own files', async () => {
    const { cursor } = await since(null);
    await setUser('first');
    let isLost = false;
    const losing: ExportWriter = async (context, options) => {
      const written = await writeExport(context, options);
      if (isLost) return written;
      isLost = true;
      await setUser('second');
      throw new Error('the worker is lost');
    };
    const work = await acceptExport(t.system, environmentId, { since: cursor, compression: 'none' });
    for (let tries = 0; tries < 2; tries++)
      await runExportTask(t.system, work.exportId, losing).catch(() => undefined);
    const increment = await incrementOf(await work.look());
    expect(ids(increment).users).toEqual(['first', 'second']);
    expect(ids(await since(increment.cursor)).users).toEqual([]);
  });

  // proves: environments-apart
  test('an increment from the cursor of another environment has only rows of its own', async () => {
    const other = (await t.addEnvironment('other')).environment.environmentId;
    await setUser('theirs', {}, t.system.pool, other);
    const theirs = await incrementOf(await runExport({}, writeExport, other));
    await setUser('theirs-too', {}, t.system.pool, other);
    await setUser('mine');
    expect(ids(await since(theirs.cursor)).users).toEqual(['mine']);
  });
});

describe('removals of an increment', () => {
  const removed = (cursor: string, more: object = {}) => since(cursor, { include_removed: true, ...more });

  // proves: increments-removed
  test('an increment has a line for each removed profile, and null for each removed property', async () => {
    await setUser('kept', { a: 1 });
    await setUser('changed', { a: 1, b: { c: 2 }, d: 3 });
    await setUser('gone', { a: 1 });
    await setUser('erased', { a: 1 });
    await setUser('back', { a: 1, b: 2 });
    await setUser('erased-back', { a: 1, b: 2 });
    await setUser('member');
    await setCompanyOf('member', 'acme');
    await setCompany('acme');
    await setCompany('bust');
    const { cursor } = await since(null);
    await setUser('changed', { a: 2, b: { c: 2 } });
    await setUser('changed', { a: 2 });
    await setUser('new', { a: 1 });
    await setCompanyOf('member', null);
    await remove('gone');
    await remove('erased', true);
    await remove('back');
    await setUser('back', { b: 3 });
    await remove('erased-back', true);
    await setUser('erased-back', { c: 1 });
    await t.system.pool.query(`delete from companies where company_id = 'bust'`);
    const increment = await removed(cursor);
    const company_id = null;
    expect(withoutTimes(increment.users)).toEqual([
      { user_id: 'back', company_id, metadata: { a: null, b: 3 } },
      { user_id: 'changed', company_id, metadata: { a: 2, b: null, d: null } },
      { user_id: 'erased', removed: true },
      { user_id: 'erased-back', removed: true },
      { user_id: 'erased-back', company_id, metadata: { c: 1 } },
      { user_id: 'gone', removed: true },
      { user_id: 'member', company_id, metadata: {} },
      { user_id: 'new', company_id, metadata: { a: 1 } },
    ]);
    expect(withoutTimes(increment.companies)).toEqual([{ company_id: 'bust', removed: true }]);
    const next = await removed(increment.cursor);
    expect([next.users, next.companies]).toEqual([[], []]);
    // Without removals, the export returns only the rows that still exist.
    expect(withoutTimes((await since(cursor)).users).map(({ metadata }) => metadata)).toEqual([
      ...[{ b: 3 }, { a: 2 }, { c: 1 }, {}, { a: 1 }],
    ]);
  });

  test('an increment reports a profile as removed after a deletion has erased its images', async () => {
    await setUser('gone', { a: 1 });
    const { cursor } = await since(null);
    await remove('gone');
    const deletion = await acceptDeletion(t.system, environmentId, 'users', ['gone']);
    expect(await deletion.run()).toMatchObject({ status: 'completed' });
    expect((await removed(cursor)).users).toEqual([{ user_id: 'gone', removed: true }]);
  });

  test('an increment does not repeat a removal before its cursor, nor for a profile that did not change', async () => {
    await setUser('late', { a: 1 });
    const { cursor } = await since(null);
    // Inserts a row of the kind that remains in the log after a deletion has erased the earlier
    // states of a profile. Here, the profile exists again.
    await sql`insert into changes (position, position_before, environment_id, entity, key, removed)
      values (current_position(), current_position(), ${environmentId}, 'users', 'late', true)`.execute(
      t.system.db,
    );
    expect((await removed(cursor)).users).toEqual([]);
  });

  test('an increment has no removals of excluded users and properties', async () => {
    for (const id of ['a', 'test-a', 'test-b']) await setUser(id, { a: 1, secret: 1 });
    const { cursor } = await since(null);
    await setUser('a', {});
    await remove('test-a');
    const increment = await removed(cursor, { exclusions: 'user:test-*,property:sec*' });
    expect(withoutTimes(increment.users)).toEqual([
      { user_id: 'a', company_id: null, metadata: { a: null } },
    ]);
  });

  test('removals are a column of a Parquet file', async () => {
    await setUser('a', { a: 1 });
    await setUser('b');
    const { cursor } = await since(null);
    await setUser('a', { b: 1 });
    await remove('b');
    const job = await runExport({
      since: cursor,
      include_removed: true,
      format: 'parquet',
      event_type: 'users',
      compression: null,
    });
    const file = job.files.find(({ filename }) => filename === 'users.parquet');
    if (file === undefined) throw new Error('there is no such file');
    const pieces: Buffer[] = [];
    const source = {
      bytes: file.bytes,
      read: (start: number, end: number) => t.system.files.readRange(file.ref as FileRef, start, end),
    };
    for await (const piece of parquetToNdjson(source)) pieces.push(piece);
    expect(withoutTimes(records(Buffer.concat(pieces).toString()))).toEqual([
      { user_id: 'a', metadata: { a: null, b: 1 } },
      { user_id: 'b', removed: expect.anything() },
    ]);
  });
});

describe('a cursor', () => {
  test('a malformed cursor is refused, and so are filters that do not combine with removals', async () => {
    for (const cursor of ['x', '1', '5:3:', '3:5:7', '3:5:4,3', '0:1:', '1:2:3:4', '9'.repeat(19), "1:2:'"]) {
      await expect(acceptExport(t.system, environmentId, { since: cursor })).rejects.toMatchObject({
        problems: [{ code: 'invalid_cursor', details: 'since' }],
      });
    }
    for (const filter of [
      { from: '2026-01-01' },
      { user_id: 'a' },
      { company_id: 'a' },
      { format: 'csv' },
      { exclusions: 'company:a' },
      { layout: 'stream' },
    ]) {
      await expect(
        acceptExport(t.system, environmentId, { include_removed: true, ...filter }),
      ).rejects.toMatchObject({ problems: [{ code: 'invalid_field', details: Object.keys(filter)[0] }] });
    }
  });

  // proves: increments-removed
  test('a cursor that is ahead, of another life of the database or older than the log is refused, or fails its export', async () => {
    const { cursor } = await since(null);
    const expired = { problems: [{ code: 'cursor_expired', details: 'since' }] };
    const ask = (body: Readonly<Record<string, unknown>>) => acceptExport(t.system, environmentId, body);
    await expect(ask({ since: '1:999999999999:' })).rejects.toMatchObject(expired);
    await sql`update change_log set lineage = '{[0,2)}'`.execute(t.system.db);
    await expect(ask({ since: cursor })).rejects.toMatchObject(expired);
    await sql`update change_log set lineage = '{[0,)}'`.execute(t.system.db);
    const work = await ask({ since: cursor, include_removed: true });
    await sql`update change_log set complete_since = next_position()`.execute(t.system.db);
    await runExportTask(t.system, work.exportId);
    expect(await work.look()).toMatchObject({
      status: 'failed',
      failure: { code: 'cursor_expired' },
      cursor: null,
    });
    await expect(ask({ since: cursor, include_removed: true })).rejects.toMatchObject(expired);
    await setUser('new');
    expect(ids(await since(cursor)).users).toEqual(['new']);
  });

  test('a cursor has no removals while changes are not kept', async () => {
    const { cursor } = await since(null);
    await sql`update change_log set complete_since = null, complete_since_at = null`.execute(t.system.db);
    try {
      await expect(
        acceptExport(t.system, environmentId, { since: cursor, include_removed: true }),
      ).rejects.toMatchObject({ problems: [{ code: 'invalid_field', details: 'include_removed' }] });
    } finally {
      await sql`update change_log set complete_since = 0, complete_since_at = now()`.execute(t.system.db);
    }
  });
});
