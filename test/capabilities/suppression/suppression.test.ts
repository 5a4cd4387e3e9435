import { sql } from 'kysely';
import { beforeEach, describe, expect, test } from 'vitest';
import { applyRules } from '../../../src/capabilities/rules/store.ts';
import { findSuppressed, liftSuppressions } from '../../../src/capabilities/suppression/store.ts';
import type { Deletion } from '../../../src/deletion/store.ts';
import type { BatchItem, ItemRecord } from '../../../src/ingest/records.ts';
import type { Load } from '../../../src/load/read-store.ts';
import { inTransaction } from '../../../src/postgres/database.ts';
import { acceptDeletion, readStored } from '../../support/deletions.ts';
import {
  type FileOptions,
  loadFile,
  newEnvironment,
  readProfiles,
  readRejects,
  runManually,
  startManually,
  withoutQueue,
} from '../../support/load-file.ts';
import { systemOfFile } from '../../support/system.ts';
import { sendRecord, untilItWaits, untilStatementWaits, writeUsers } from '../../support/write-users.ts';
import { undo } from '../undo/support/undo.ts';

const t = await systemOfFile();
let environmentId: number;
beforeEach(async () => {
  environmentId = await newEnvironment(t.system);
});

const load = (content: string, options: FileOptions = {}) =>
  loadFile(t.system, environmentId, content, options);
const stored = () => readStored(t.system, environmentId);

async function keepOut(...ids: string[]): Promise<Deletion> {
  const deletion = await acceptDeletion(t.system, environmentId, 'users', ids, { suppress: true });
  return deletion.run();
}

async function rejectsOf({ jobId }: Load) {
  const rejects = await readRejects(t.system, jobId);
  return rejects.map(({ row, code, column, raw }) => ({ row, code, column, raw: String(raw) }));
}

const shared = () => ({ environmentId, companyId: null, marked: false, bytes: 10 });
const user = (userId: string, at?: string): ItemRecord => ({
  entity: 'users',
  record: {
    ...shared(),
    ...{ userId, properties: { a: '1' }, company: {} },
    ...(at !== undefined && { at: { text: at, ms: Date.parse(at) } }),
  },
});
const event = (userId: string, eventId: string | null = null): ItemRecord => ({
  entity: 'events',
  record: { ...shared(), userId, eventName: 'seen', eventId, insertedAt: null, metadata: {} },
});
const send = (item: ItemRecord, key: string | null = null) => sendRecord(t.system.ingest, item, key);
const sendBatch = (records: readonly ItemRecord[], isWhole = false) =>
  t.system.ingest.batch(
    environmentId,
    async () => ({
      items: records.map((one, index): BatchItem => ({ index, ...one })),
      rejected: [],
      isWhole,
    }),
    10,
    null,
  );
const suppressed = { problems: [{ code: 'suppressed' }] };

const ruled = { users: { properties: { plan: { enum: ['free'], otherwise: 'refuse' } } } } as const;

describe('records of a person who is kept out', () => {
  // proves: suppressed
  test.each([
    ['CSV, a chunk of all', 'user_id,plan\nu1,pro\ngone,pro\nu2,pro\n', {}],
    ['CSV, a chunk of each', 'user_id,plan\nu1,pro\ngone,pro\nu2,pro\n', { chunkBytes: 1 }],
    ['CSV with times', 'user_id,plan,at\nu1,pro,2026-01-01\ngone,pro,2026-01-02\nu2,pro,\n', {}],
    [
      'NDJSON',
      '{"user_id":"u1"}\n{"user_id":"gone","metadata":{"secret":1}}\n{"user_id":"u2"}\n',
      { chunkBytes: 1 },
    ],
    [
      'events',
      '{"event_type":"identify_user","user_id":"u1"}\n{"event_type":"track","user_id":"gone","event_name":"e"}\n{"event_type":"identify_user","user_id":"u2"}\n',
      { entity: 'auto' },
    ],
    [
      'an export of another product',
      '{"type":"identify","userId":"u1","messageId":"1"}\n{"type":"track","userId":"gone","event":"e","messageId":"2"}\n{"type":"identify","userId":"u2","messageId":"3"}\n',
      { entity: 'auto', preset: 'segment' },
    ],
  ] as const)('are refused in files and their text is not kept: %s', async (_, content, options) => {
    await keepOut('gone');
    for (const before of ['', 'u1']) {
      // The first load inserts users who are all new, the second merges.
      if (before !== '') await load(`user_id\n${before}\n`);
      const done = await load(content, { ...options });
      expect(done).toMatchObject({ status: 'completed', tally: { read: 3, rejected: 1 } });
      expect(await rejectsOf(done)).toMatchObject([
        { row: 2, code: 'suppressed', column: 'user_id', raw: '' },
      ]);
      expect(await stored()).toMatchObject({ users: ['u1', 'u2'], events: [], eventIds: [] });
    }
  });

  // proves: suppressed
  test.each([
    [
      'a bad time',
      'user_id,inserted_at,event_type\ngone,never,identify_user\nu1,never,identify_user\n',
      { entity: 'auto' },
    ],
    ['a cell too few', 'user_id,plan,city\ngone,secret\nu1,pro\n', {}],
    ['an id in quotes', 'user_id,plan,city\n"gone",secret\nu1,pro\n', {}],
    ['a rule', 'user_id,plan\ngone,secret\nu1,pro\n', { rules: ruled }],
    [
      'a rule, by JSON',
      '{"user_id":"gone","plan":"secret"}\n{"user_id":"u1","plan":"pro"}\n',
      { rules: ruled },
    ],
    ['metadata that is none', '{"user_id":"gone","metadata":7}\n{"user_id":"u1","metadata":7}\n', {}],
    [
      'a key that the map renames',
      '{"uid":"gone","metadata":7}\n{"uid":"u1","metadata":7}\n',
      { map: { uid: 'user_id' } },
    ],
    [
      'a time in a record of another product',
      '{"type":"track","userId":"gone","event":"e","timestamp":"x"}\n{"type":"track","userId":"u1","event":"e","timestamp":"x"}\n',
      { entity: 'auto', preset: 'segment' },
    ],
    [
      'its kind in a record of another product',
      '{"type":"x","userId":"gone","event":"e"}\n{"type":"x","userId":"u1","event":"e"}\n',
      { entity: 'auto', preset: 'segment' },
    ],
    [
      'a time in a CSV of another product',
      'event,time,distinct_id,$insert_id\ne,x,gone,1\ne,x,u1,2\n',
      { entity: 'auto', preset: 'mixpanel' },
    ],
  ] as const)(
    'are refused as theirs and without text, whatever else is wrong: %s',
    async (_, content, options) => {
      await keepOut('gone');
      const { rules, ...others } = { rules: null, ...options };
      if (rules !== null) await applyRules(t.system.db, environmentId, rules, null);
      const done = await load(content, others);
      const rejects = await rejectsOf(done);
      expect(rejects).toMatchObject([{ row: 1, code: 'suppressed', raw: '' }, { row: 2 }]);
      expect(rejects[1]).toMatchObject({
        code: expect.not.stringMatching('suppressed'),
        raw: expect.stringMatching('u1'),
      });
    },
  );

  // proves: suppressed
  test('are refused alone among those that arrive with them, in single requests and batches', async () => {
    await load('user_id\ngone\n');
    await keepOut('gone');
    const at = '2026-01-01T00:00:00.000000Z';
    const refused = [user('gone'), user('gone', at), event('gone'), event('gone', 'e1')];
    for (const key of [null, 'key']) {
      const taken = [user('u1'), user('u2', at), event('u1'), event('u2', 'e2')];
      const answers = await Promise.allSettled(
        [...refused, ...taken].map((one, place) => send(one, key && `${key}${place}`)),
      );
      for (const answer of answers.slice(0, 4)) expect(answer).toMatchObject({ reason: suppressed });
      for (const answer of answers.slice(4)) expect(answer).toMatchObject({ status: 'fulfilled' });
    }
    const [one, two] = await Promise.all([
      sendBatch([user('gone'), user('u3'), event('gone', 'e3'), event('u3', 'e4')]),
      sendBatch([event('u3', 'e5'), event('gone')]),
    ]);
    expect(one).toMatchObject({ accepted: 2, rejected: [{ index: 0 }, { index: 2 }] });
    expect(two).toMatchObject({ accepted: 1, rejected: [{ index: 1, error_code: 'suppressed' }] });
    expect((await stored()).users).toEqual(['u1', 'u2', 'u3']);
    expect((await stored()).eventIds).toEqual(['e2', 'e4', 'e5']);
  });

  // proves: suppressed
  test('are refused with all that a batch holds that is stored whole or not at all, and with nothing of another', async () => {
    await keepOut('gone');
    const [lost, taken] = await Promise.all([
      sendBatch([user('u1'), user('gone'), event('u1', 'e1')], true),
      sendBatch([user('u2'), event('u2', 'e2')], true),
    ]);
    expect(lost).toMatchObject({ accepted: 0, rejected: [{ index: 1, error_code: 'suppressed' }] });
    expect(taken).toMatchObject({ accepted: 2, rejected: [] });
    expect(await stored()).toMatchObject({ users: ['u2'], eventIds: ['e2'] });
  });

  // proves: suppressed
  test('neither come back by an undo nor by a load that replays', async () => {
    const first = await load('user_id,plan\ngone,free\nstays,free\n');
    const second = await load('user_id,plan\ngone,pro\nstays,pro\n');
    await keepOut('gone');
    await undo(t.system, environmentId, [second.jobId]);
    await undo(t.system, environmentId, [first.jobId]);
    expect(await stored()).toMatchObject({ users: [] });
    const content = 'user_id,plan\nstays,1\ngone,1\nstays,2\ngone,2\nstays,3\n';
    const replayed = await runManually(
      await startManually(withoutQueue(t.system), environmentId, content, { chunkBytes: 1 }),
      [4, 3, 2, 1, 0],
    );
    expect(replayed).toMatchObject({ status: 'completed', tally: { read: 5, rejected: 2 } });
    expect((await readProfiles(t.system, environmentId)).users).toEqual({
      stays: { metadata: { plan: '3' }, company: null },
    });
  });

  // proves: suppressed
  test('are taken again once the suppression is lifted, and were never refused in another environment', async () => {
    const other = await newEnvironment(t.system);
    await keepOut('gone');
    await t.system.ingest.identifyUser(
      { ...shared(), environmentId: other, userId: 'gone', properties: {}, company: {} },
      null,
    );
    expect(await findSuppressed(t.system.db, other, ['gone'])).toEqual(new Set());
    expect(await liftSuppressions(t.system.db, other, ['gone'])).toBe(0);
    expect(await liftSuppressions(t.system.db, environmentId, ['gone', 'unknown'])).toBe(1);
    await send(user('gone'));
    await load('user_id\ngone\n');
    expect((await stored()).users).toEqual(['gone']);
  });

  // proves: suppressed, environments-apart
  test('are refused beside records of the same id in another environment, which share their statement and are stored', async () => {
    const other = await newEnvironment(t.system);
    await keepOut('gone');
    const elsewhere = user('gone');
    const sent = [
      user('gone'),
      user('u1'),
      { ...elsewhere, record: { ...elsewhere.record, environmentId: other } },
    ];
    const answers = await Promise.allSettled(sent.map((one) => send(one as ItemRecord)));
    expect(answers).toMatchObject([{ reason: suppressed }, { status: 'fulfilled' }, { status: 'fulfilled' }]);
    expect((await stored()).users).toEqual(['u1']);
    expect((await readStored(t.system, other)).users).toEqual(['gone']);
  });

  // proves: suppressed
  test('keep no mirror from removing what its file does not hold', async () => {
    await load('user_id\nold\n');
    await keepOut('gone');
    const options = { source: { mirror: 'remove', maxRemoved: '100%' } } as const;
    const mirrored = await load('user_id\nu1\ngone\n', { entity: 'users', ...options });
    expect(mirrored).toMatchObject({ status: 'completed', tally: { rejected: 1 } });
    expect((await stored()).users).toEqual(['u1']);
  });

  test('count as refused for max_errors, before anything is written', async () => {
    await keepOut('gone');
    for (const chunkBytes of [1, 1_000]) {
      const failed = await load('user_id\nu1\ngone\n', { maxErrors: { count: 0 }, chunkBytes });
      expect(failed).toMatchObject({ status: 'failed', failure: { code: 'too_many_rejects' } });
    }
    expect((await stored()).users).toEqual([]);
  });
});

// proves: suppressed
test('who began to write before the suppression is waited for, and what they wrote is deleted', async () => {
  const deletion = await acceptDeletion(t.system, environmentId, 'users', ['late'], { suppress: true });
  const { done } = await inTransaction(t.system.pool, async ({ client }) => {
    const row = { environmentId, key: 'late', companyId: null, removes: false, properties: '{}' };
    await writeUsers(client, [row], []);
    return untilItWaits(t.system, deletion.run);
  });
  expect(await done).toMatchObject({ status: 'completed', counts: { deleted: 1 } });
  expect((await stored()).users).toEqual([]);
});

// proves: suppressed
test('who is held up after the look at what the environment uses is waited for, too', async () => {
  await send(user('late'));
  const deletion = await acceptDeletion(t.system, environmentId, 'users', ['late'], { suppress: true });
  const { sent, done } = await inTransaction(t.system.pool, async ({ db }) => {
    await sql`select from users where environment_id = ${environmentId} for update`.execute(db);
    const sent = send(user('late'));
    await untilStatementWaits(t.system);
    return { sent, ...(await untilItWaits(t.system, deletion.run)) };
  });
  await sent;
  expect(await done).toMatchObject({ status: 'completed', counts: { deleted: 1 } });
  expect((await stored()).users).toEqual([]);
  await expect(send(user('late'))).rejects.toMatchObject(suppressed);
});

// proves: suppressed-hashed
test('nothing that is stored of a suppression holds the id, and equal ids of two environments look different', async () => {
  const id = 'ada@example.com';
  const all = async () =>
    (
      await sql<{
        row: string;
      }>`select s::text || k::text as row from suppressions s join suppression_keys k using (environment_id)`.execute(
        t.system.db,
      )
    ).rows.map(({ row }) => row);
  const before = (await all()).length;
  const hashes = async () =>
    (
      await sql<{ hash: string }>`
        select encode(id_hash, 'hex') as hash from suppressions where environment_id = ${environmentId}`.execute(
        t.system.db,
      )
    ).rows;
  await keepOut(id);
  const first = await hashes();
  environmentId = await newEnvironment(t.system);
  await keepOut(id);
  expect(await hashes()).not.toEqual(first);
  const rows = await all();
  expect(rows).toHaveLength(before + 2);
  for (const row of rows) expect(row).not.toContain(Buffer.from(id).toString('hex'));
});
