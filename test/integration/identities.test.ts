import { sql } from 'kysely';
import { uuidv7 } from 'uuidv7';
import { beforeEach, describe, expect, test } from 'vitest';
import { addAlias } from '../../src/load/undo/add-alias.ts';
import { inTransaction } from '../../src/postgres/database.ts';
import { knowsAliases } from '../../src/postgres/stores/aliases.ts';
import type { Load } from '../../src/postgres/stores/read-loads.ts';
import { type FileOptions, newEnvironment, readProfiles, withoutQueue } from '../support/load-file.ts';
import { systemOfFile } from '../support/system.ts';
import { loadFile, runJob, undo } from '../support/undo.ts';
import { waitFor } from '../support/wait-for.ts';

const t = await systemOfFile();
let environmentId: number;

beforeEach(async () => {
  environmentId = await newEnvironment(t.system);
});

const load = (content: string, options: FileOptions = {}) =>
  loadFile(t.system, environmentId, content, options);
const users = async () => (await readProfiles(t.system, environmentId)).users;

/** Makes an alias; returns its job, which nobody has done. */
async function give(alias: string, userId: string, merges = false): Promise<string | null> {
  const asked = { jobId: uuidv7(), requestId: null, origin: { kind: 'command_line', name: null } } as const;
  const made = await addAlias(withoutQueue(t.system), environmentId, { alias, userId }, merges, asked);
  return made.job_id;
}

async function join(alias: string, userId: string, merges = false) {
  return runJob(t.system, environmentId, (await give(alias, userId, merges)) ?? '');
}

async function events(): Promise<string[]> {
  const { rows } = await sql<{ user: string; name: string }>`
    select user_id as user, event_name as name from events where environment_id = ${environmentId} order by 1, 2`.execute(
    t.system.db,
  );
  return rows.map(({ user, name }) => `${user} ${name}`);
}

const track = (userId: string, name: string, more: object = {}): string =>
  `${JSON.stringify({ event_type: 'track', user_id: userId, event_name: name, inserted_at: '2026-11-01T00:00:00Z', ...more })}\n`;
const identify = (userId: string, metadata: object, more: object = {}): string =>
  `${JSON.stringify({ event_type: 'identify_user', user_id: userId, metadata, ...more })}\n`;
const sendUser = (userId: string, properties: object) =>
  t.system.ingest.identifyUser(
    {
      environmentId,
      userId,
      properties: { ...properties },
      companyId: null,
      company: {},
      marked: false,
      bytes: 10,
    },
    null,
  );
const sendEvent = (userId: string, eventName: string, eventId: string | null = null) =>
  t.system.ingest.track(
    {
      environmentId,
      userId,
      eventName,
      eventId,
      companyId: null,
      insertedAt: null,
      metadata: {},
      marked: false,
      bytes: 10,
    },
    null,
  );

describe('an alias', () => {
  // proves: identities
  test('moves events and properties to the person, whose own win, and its undo gives them back', async () => {
    await load(
      identify('u1', { plan: 'pro' }) +
        identify('anon', { plan: 'free', source: 'ads' }, { company_id: 'acme' }) +
        track('anon', 'visited', { event_id: 'e1' }) +
        track('u1', 'paid', { event_id: 'e2' }),
    );
    const before = await users();
    const done = await join('anon', 'u1');
    expect(done).toMatchObject({
      type: 'join',
      status: 'completed',
      tally: { read: 3, updated: 2, removed: 1 },
    });
    expect(await users()).toEqual({ u1: { metadata: { plan: 'pro', source: 'ads' }, company: 'acme' } });
    expect(await events()).toEqual(['u1 paid', 'u1 visited']);
    const undone = await undo(t.system, environmentId, [done.jobId]);
    expect(undone).toMatchObject({ status: 'completed', tally: { rejected: 0 } });
    expect(await users()).toEqual(before);
    expect(await events()).toEqual(['anon visited', 'u1 paid']);
    const again = { problems: [{ code: 'job_not_undoable' }] };
    await expect(undo(t.system, environmentId, [undone.jobId])).rejects.toMatchObject(again);
    await load(identify('anon', { again: '1' }));
    expect((await users())['anon']?.metadata).toEqual({ plan: 'free', source: 'ads', again: '1' });
  });

  // proves: identities
  test('takes records of every way in to the person', async () => {
    await give('a1', 'u1');
    await load(
      identify('a1', { one: '1' }) + identify('u1', { one: '2', two: '2' }) + track('a1', 'in file'),
      {
        chunkBytes: 1,
      },
    );
    await load(identify('u1', { two: '2' }) + identify('a1', { two: '3' }));
    await sendUser('a1', { three: '3' });
    await sendEvent('a1', 'alone');
    await sendEvent('a1', 'alone', 'x1');
    await sendEvent('u1', 'twice', 'x1');
    expect(await users()).toEqual({ u1: { metadata: { one: '2', two: '3', three: '3' }, company: null } });
    expect(await events()).toEqual(['u1 alone', 'u1 alone', 'u1 in file']);
  });

  // proves: distinct-ids
  test.each([
    [
      'a record of a CSV',
      'event_type,user_id,alias,plan\nidentify_user,u1,nick,pro\nalias,u1,a1,x\n',
      { alias: 'nick', plan: 'pro' },
    ],
    ['a record of NDJSON', '{"event_type":"alias","user_id":"u1","alias":"a1"}\n', {}],
    ['a column of users', 'user_id,distinct_ids,plan\nu1,"[""u1"",""a1""]",pro\nu2,,free\n', { plan: 'pro' }],
    ['a list of a user', '{"user_id":"u1","distinct_ids":["a1","u1"],"plan":"pro"}\n', { plan: 'pro' }],
    ['a number', '{"user_id":1,"distinct_ids":["1",7]}\n{"user_id":"u1","distinct_ids":["a1"]}\n', {}],
  ])('is made by %s', async (_, content, metadata) => {
    expect((await load(content, { entity: 'auto' })).tally).toMatchObject({ rejected: 0 });
    await sendUser('a1', {});
    const { u1, a1 } = await users();
    expect([u1?.metadata, a1]).toEqual([metadata, undefined]);
  });

  // proves: distinct-ids
  test.each([
    'event_type,user_id,alias\nalias,u1,\nalias,,a1\n',
    'user_id,distinct_ids\nu1,a1\nu1,"[""a1"",{}]"\n',
    '{"user_id":"u1","distinct_ids":"a1"}\n{"user_id":"u1","distinct_ids":["a1"," "]}\n',
  ])('is refused, and never lost, where it cannot be one: %j', async (content) => {
    expect((await load(content, { entity: 'auto' })).tally).toMatchObject({ read: 2, rejected: 2 });
    expect(await users()).toEqual({});
  });

  test('counts an event that both ids have once', async () => {
    await load(track('anon', 'visited', { event_id: 'e1' }) + track('u1', 'visited', { event_id: 'e1' }));
    expect((await join('anon', 'u1')).tally).toMatchObject({ read: 1, removed: 1 });
    expect(await events()).toEqual(['u1 visited']);
  });

  test('of dated properties leaves the newer value', async () => {
    await load(
      identify('anon', { plan: 'new', seats: 'old' }, { inserted_at: '2026-11-10T00:00:00Z' }) +
        identify('u1', { plan: 'old' }, { inserted_at: '2026-11-01T00:00:00Z' }) +
        identify('u1', { seats: 'new' }, { inserted_at: '2026-11-20T00:00:00Z' }),
    );
    await join('anon', 'u1');
    expect((await users())['u1']?.metadata).toEqual({ plan: 'new', seats: 'new' });
  });

  // proves: alias-of-one
  test('belongs to one person: chains and cycles lead to that person, and others are refused or merged', async () => {
    await load(
      identify('a', { a: '1' }) +
        identify('b', { b: '1' }) +
        identify('c', { c: '1' }) +
        identify('d', { d: '1' }),
    );
    await give('a', 'b');
    expect(await give('b', 'a')).toBeNull();
    expect(await give('b', 'b')).toBeNull();
    await expect(give('a', 'd')).rejects.toMatchObject({ problems: [{ code: 'alias_taken' }] });
    await join('b', 'c');
    expect(await users()).toEqual({
      c: { metadata: { a: '1', b: '1', c: '1' }, company: null },
      d: { metadata: { d: '1' }, company: null },
    });
    await join('a', 'd', true);
    await sendUser('b', { last: '1' });
    expect(await users()).toEqual({
      d: { metadata: { a: '1', b: '1', c: '1', d: '1', last: '1' }, company: null },
    });
  });

  test('goes back to a user who became an alias, when that is undone', async () => {
    await load(identify('a', { a: '1' }) + identify('b', { b: '1' }) + identify('c', { c: '1' }));
    const first = await join('a', 'b');
    const second = await join('b', 'c');
    await expect(undo(t.system, environmentId, [first.jobId])).rejects.toMatchObject({
      problems: [{ code: 'job_not_undoable' }],
    });
    await undo(t.system, environmentId, [second.jobId]);
    await sendUser('a', { again: '1' });
    expect((await users())['b']?.metadata).toEqual({ a: '1', b: '1', again: '1' });
    await undo(t.system, environmentId, [first.jobId]);
    expect(Object.keys(await users())).toEqual(['a', 'b', 'c']);
  });

  test('lets the undo of an earlier load remove the events that moved; the properties, only once the join is undone', async () => {
    const wrong = await load(identify('anon', { plan: 'x' }) + track('anon', 'wrong', { event_id: 'e1' }));
    const moved = await join('anon', 'u1');
    await undo(t.system, environmentId, [wrong.jobId]);
    expect(await events()).toEqual([]);
    expect((await users())['u1']?.metadata).toEqual({ plan: 'x' });
    await undo(t.system, environmentId, [moved.jobId]);
    expect(await users()).toEqual({});
  });

  // proves: identities
  test('is waited for: who began to write before it was made leaves nothing under it', async () => {
    let done: Promise<Load> | undefined;
    await inTransaction(t.system.pool, async ({ db }) => {
      expect(await knowsAliases(db, environmentId)).toBe(false);
      done = runJob(t.system, environmentId, (await give('anon', 'u1')) ?? '');
      await waitFor('the join to begin', async () => {
        const { rows } =
          await sql`select 1 from loads where environment_id = ${environmentId} and type = 'join' and status = 'processing'`.execute(
            t.system.db,
          );
        return rows.length > 0;
      });
      await sql`insert into users (environment_id, user_id, metadata) values (${environmentId}, 'anon', '{"late": "1"}')`.execute(
        db,
      );
    });
    expect(await done).toMatchObject({ status: 'completed' });
    expect(await users()).toEqual({ u1: { metadata: { late: '1' }, company: null } });
  });
});
