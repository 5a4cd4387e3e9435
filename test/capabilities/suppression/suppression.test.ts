import { sql } from 'kysely';
import { beforeEach, expect, test } from 'vitest';
import { applyRules } from '../../../src/capabilities/rules/store.ts';
import { findSuppressed, liftSuppressions } from '../../../src/capabilities/suppression/store.ts';
import type { Deletion } from '../../../src/deletion/store.ts';
import type { BatchItem, ItemRecord } from '../../../src/ingest/records.ts';
import type { Load } from '../../../src/load/read-store.ts';
import { inTransaction } from '../../../src/postgres/database.ts';
import {
  type FileOptions,
  loadFile,
  newEnvironment,
  readProfiles,
  readRejects,
  runManually,
  startManually,
  withoutQueue,
} from '../../support/files/load-file.ts';
import { acceptDeletion, readStored } from '../../support/servers/deletions.ts';
import { systemOfFile } from '../../support/servers/system.ts';
import {
  sendRecord,
  untilItWaits,
  untilStatementWaits,
  writeUsers,
} from '../../support/servers/write-users.ts';
import { undo } from '../undo/support/undo.ts';

const t = await systemOfFile();
let environmentId: number;
beforeEach(async () => {
  environmentId = await newEnvironment(t.system);
});

const load = (content: string, options: FileOptions = {}) =>
  loadFile(t.system, environmentId, content, options);
const readAll = () => readStored(t.system, environmentId);

async function suppress(...ids: string[]): Promise<Deletion> {
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
    userId,
    properties: { a: '1' },
    company: {},
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
const suppressedError = { problems: [{ code: 'suppressed' }] };

const planRules = { users: { properties: { plan: { enum: ['free'], otherwise: 'refuse' } } } } as const;

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
] as const)('suppressed records of a file leave no text: %s', async (_, content, options) => {
  await suppress('gone');
  for (const existing of ['', 'u1']) {
    // The first load finds no users, so it only inserts. The second finds a user, so it merges.
    if (existing !== '') await load(`user_id\n${existing}\n`);
    const ended = await load(content, { ...options });
    expect(ended).toMatchObject({ status: 'completed', tally: { read: 3, rejected: 1 } });
    expect(await rejectsOf(ended)).toMatchObject([
      { row: 2, code: 'suppressed', column: 'user_id', raw: '' },
    ]);
    expect(await readAll()).toMatchObject({ users: ['u1', 'u2'], events: [], eventIds: [] });
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
  ['a rule', 'user_id,plan\ngone,secret\nu1,pro\n', { rules: planRules }],
  [
    'a rule, by JSON',
    '{"user_id":"gone","plan":"secret"}\n{"user_id":"u1","plan":"pro"}\n',
    { rules: planRules },
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
  'a record of a suppressed person is refused for that alone, without its text: %s',
  async (_, content, options) => {
    await suppress('gone');
    const { rules, ...loadOptions } = { rules: null, ...options };
    if (rules !== null) await applyRules(t.system, environmentId, rules, null);
    const ended = await load(content, loadOptions);
    const rejects = await rejectsOf(ended);
    expect(rejects).toMatchObject([{ row: 1, code: 'suppressed', raw: '' }, { row: 2 }]);
    expect(rejects[1]).toMatchObject({
      code: expect.not.stringMatching('suppressed'),
      raw: expect.stringMatching('u1'),
    });
  },
);

// proves: suppressed
test('only records of a suppressed person are refused in requests and batches', async () => {
  await load('user_id\ngone\n');
  await suppress('gone');
  const at = '2026-01-01T00:00:00.000000Z';
  const refusedItems = [user('gone'), user('gone', at), event('gone'), event('gone', 'e1')];
  for (const key of [null, 'key']) {
    const acceptedItems = [user('u1'), user('u2', at), event('u1'), event('u2', 'e2')];
    const answers = await Promise.allSettled(
      [...refusedItems, ...acceptedItems].map((one, place) => send(one, key && `${key}${place}`)),
    );
    for (const answer of answers.slice(0, 4)) expect(answer).toMatchObject({ reason: suppressedError });
    for (const answer of answers.slice(4)) expect(answer).toMatchObject({ status: 'fulfilled' });
  }
  const [firstAnswer, secondAnswer] = await Promise.all([
    sendBatch([user('gone'), user('u3'), event('gone', 'e3'), event('u3', 'e4')]),
    sendBatch([event('u3', 'e5'), event('gone')]),
  ]);
  expect(firstAnswer).toMatchObject({ accepted: 2, rejected: [{ index: 0 }, { index: 2 }] });
  expect(secondAnswer).toMatchObject({ accepted: 1, rejected: [{ index: 1, error_code: 'suppressed' }] });
  expect((await readAll()).users).toEqual(['u1', 'u2', 'u3']);
  expect((await readAll()).eventIds).toEqual(['e2', 'e4', 'e5']);
});

// proves: suppressed
test('a whole batch with a suppressed person is refused, and no other batch', async () => {
  await suppress('gone');
  const [refusedBatch, acceptedBatch] = await Promise.all([
    sendBatch([user('u1'), user('gone'), event('u1', 'e1')], true),
    sendBatch([user('u2'), event('u2', 'e2')], true),
  ]);
  expect(refusedBatch).toMatchObject({ accepted: 0, rejected: [{ index: 1, error_code: 'suppressed' }] });
  expect(acceptedBatch).toMatchObject({ accepted: 2, rejected: [] });
  expect(await readAll()).toMatchObject({ users: ['u2'], eventIds: ['e2'] });
});

// proves: suppressed
test('an undo and a replayed load do not restore a suppressed person', async () => {
  const firstLoad = await load('user_id,plan\ngone,free\nstays,free\n');
  const secondLoad = await load('user_id,plan\ngone,pro\nstays,pro\n');
  await suppress('gone');
  await undo(t.system, environmentId, [secondLoad.jobId]);
  await undo(t.system, environmentId, [firstLoad.jobId]);
  expect(await readAll()).toMatchObject({ users: [] });
  const content = 'user_id,plan\nstays,1\ngone,1\nstays,2\ngone,2\nstays,3\n';
  const replay = await runManually(
    await startManually(withoutQueue(t.system), environmentId, content, { chunkBytes: 1 }),
    [4, 3, 2, 1, 0],
  );
  expect(replay).toMatchObject({ status: 'completed', tally: { read: 5, rejected: 2 } });
  expect((await readProfiles(t.system, environmentId)).users).toEqual({
    stays: { metadata: { plan: '3' }, company: null },
  });
});

// proves: suppressed
test('a person is accepted again once readmitted, and always in other environments', async () => {
  const otherId = await newEnvironment(t.system);
  await suppress('gone');
  await t.system.ingest.identifyUser(
    { ...shared(), environmentId: otherId, userId: 'gone', properties: {}, company: {} },
    null,
  );
  expect(await findSuppressed(t.system.db, otherId, ['gone'])).toEqual(new Set());
  expect(await liftSuppressions(t.system.db, otherId, ['gone'])).toBe(0);
  expect(await liftSuppressions(t.system.db, environmentId, ['gone', 'unknown'])).toBe(1);
  await send(user('gone'));
  await load('user_id\ngone\n');
  expect((await readAll()).users).toEqual(['gone']);
});

// proves: suppressed, environments-apart
test('a person suppressed in one environment is stored in another by one statement', async () => {
  const otherId = await newEnvironment(t.system);
  await suppress('gone');
  const elsewhere = user('gone');
  const items = [
    user('gone'),
    user('u1'),
    { ...elsewhere, record: { ...elsewhere.record, environmentId: otherId } },
  ];
  const answers = await Promise.allSettled(items.map((one) => send(one as ItemRecord)));
  expect(answers).toMatchObject([
    { reason: suppressedError },
    { status: 'fulfilled' },
    { status: 'fulfilled' },
  ]);
  expect((await readAll()).users).toEqual(['u1']);
  expect((await readStored(t.system, otherId)).users).toEqual(['gone']);
});

// proves: suppressed
test('rejects of a suppressed person do not stop the removals of a mirror', async () => {
  await load('user_id\nold\n');
  await suppress('gone');
  const options = { source: { mirror: 'remove', maxRemoved: '100%' } } as const;
  const mirrored = await load('user_id\nu1\ngone\n', { entity: 'users', ...options });
  expect(mirrored).toMatchObject({ status: 'completed', tally: { rejected: 1 } });
  expect((await readAll()).users).toEqual(['u1']);
});

test('suppressed records count for max_errors before anything is written', async () => {
  await suppress('gone');
  for (const chunkBytes of [1, 1_000]) {
    const failedLoad = await load('user_id\nu1\ngone\n', { maxErrors: { count: 0 }, chunkBytes });
    expect(failedLoad).toMatchObject({ status: 'failed', failure: { code: 'too_many_rejects' } });
  }
  expect((await readAll()).users).toEqual([]);
});

// proves: suppressed
test('a suppression waits for writers that started before, and deletes their records', async () => {
  const deletion = await acceptDeletion(t.system, environmentId, 'users', ['late'], { suppress: true });
  const { done } = await inTransaction(t.system.pool, async ({ client }) => {
    const row = { environmentId, key: 'late', companyId: null, removes: false, properties: '{}' };
    await writeUsers(client, [row], []);
    return untilItWaits(t.system, deletion.run);
  });
  expect(await done).toMatchObject({ status: 'completed', counts: { deleted: 1 } });
  expect((await readAll()).users).toEqual([]);
});

// proves: suppressed
test('a suppression waits for a writer that has checked the person and not written yet', async () => {
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
  expect((await readAll()).users).toEqual([]);
  await expect(send(user('late'))).rejects.toMatchObject(suppressedError);
});

// proves: suppressed-hashed
test('a stored suppression does not contain the id, and differs by environment', async () => {
  const id = 'ada@example.com';
  const readRows = async () =>
    (
      await sql<{
        row: string;
      }>`select s::text || k::text as row from suppressions s join suppression_keys k using (environment_id)`.execute(
        t.system.db,
      )
    ).rows.map(({ row }) => row);
  const countBefore = (await readRows()).length;
  const hashes = async () =>
    (
      await sql<{ hash: string }>`
        select encode(id_hash, 'hex') as hash from suppressions where environment_id = ${environmentId}`.execute(
        t.system.db,
      )
    ).rows;
  await suppress(id);
  const firstHashes = await hashes();
  environmentId = await newEnvironment(t.system);
  await suppress(id);
  expect(await hashes()).not.toEqual(firstHashes);
  const rows = await readRows();
  expect(rows).toHaveLength(countBefore + 2);
  for (const row of rows) expect(row).not.toContain(Buffer.from(id).toString('hex'));
});
