import { sql } from 'kysely';
import { beforeEach, describe, expect, test } from 'vitest';
import { chunkJob } from '../../../jobs/load.ts';
import type { UndoFields } from '../../../src/capabilities/undo/api.ts';
import { cancelLoad, startLane } from '../../../src/load/end.ts';
import { type Load, readShown } from '../../../src/load/read-store.ts';
import { applyPlan, retryLoad } from '../../../src/load/retry.ts';
import { acceptDeletion } from '../../support/deletions.ts';
import {
  acceptFile,
  type FileOptions,
  loadFile,
  manualLoad,
  newEnvironment,
  readProfiles,
  readRejects,
  runJob,
  withoutQueue,
} from '../../support/load-file.ts';
import { expectedRows, readPlannedRows } from '../../support/plans.ts';
import { systemOfFile } from '../../support/system.ts';
import { runDueTasks } from '../../support/tasks.ts';
import { writeUsers } from '../../support/write-users.ts';
import { askToUndo, undo } from './support/undo.ts';

const t = await systemOfFile();
let environmentId: number;

beforeEach(async () => {
  environmentId = await newEnvironment(t.system);
});

const load = (content: string, options: FileOptions = {}): Promise<Load> =>
  loadFile(t.system, environmentId, content, options);
const profiles = () => readProfiles(t.system, environmentId);
const shown = async (load: Load) =>
  (await readShown(t.system, environmentId, load)).fields['undo'] as NonNullable<UndoFields['undo']>;

const undone = (...loads: readonly Load[]): Promise<Load> =>
  undo(
    t.system,
    environmentId,
    loads.map(({ jobId }) => jobId),
  );

/** A single record of a user. */
const identify = (userId: string, properties: object, companyId: string | null = null): Promise<void> =>
  writeUsers(
    t.system.pool,
    [{ environmentId, key: userId, companyId, properties: JSON.stringify(properties), removes: false }],
    companyId === null ? [] : [{ environmentId, key: companyId, properties: '{}', removes: false }],
  );

/** Writes the file of an undo, and does no chunk. */
async function beginUndo(jobId: string): Promise<void> {
  await startLane(withoutQueue(t.system), environmentId);
  await (await manualLoad(t.system, environmentId, jobId)).begin();
}

describe('undoing a load', () => {
  // proves: undo
  test('puts back what it changed, removes what it made, and leaves what others changed since', async () => {
    await load('user_id,plan,seats\nu1,pro,5\nu2,pro,6\nu3,pro,7\n');
    await load('{"user_id":"u1","metadata":{"digits":12345678901234567890.10}}\n');
    const before = await profiles();
    const wrong = await load('user_id,plan,company_id\nu1,free,acme\nu2,free,\nu4,free,acme\nu5,free,acme\n');
    await identify('u2', { plan: 'trial' });
    await identify('u5', { name: 'Eve' });
    const done = await undone(wrong);
    expect(done).toMatchObject({ status: 'completed', tally: { updated: 2, removed: 2, rejected: 1 } });
    expect(await profiles()).toEqual({
      users: {
        ...before.users,
        u2: { metadata: { plan: 'trial', seats: '6' }, company: null },
        u5: { metadata: { name: 'Eve' }, company: null },
      },
      companies: {},
    });
    const { rows } = await sql`select metadata ->> 'digits' as digits from users
      where environment_id = ${environmentId} and user_id = 'u1'`.execute(t.system.db);
    expect(rows).toEqual([{ digits: '12345678901234567890.10' }]);
    const [kept] = await readRejects(t.system, done.jobId);
    expect(kept).toMatchObject({ code: 'changed_since', column: 'plan' });
    expect(JSON.parse(Buffer.from(kept?.raw ?? []).toString())).toEqual({
      ...{ entity: 'users', id: 'u2', kept: ['plan'] },
    });
  });

  test('lets records win that come while its chunks are waiting', async () => {
    await load('user_id,plan,seats\nu1,pro,5\nu2,pro,6\n');
    const wrong = await load('user_id,plan,seats\nu1,free,0\nu2,free,0\nu3,free,0\n');
    const jobId = await askToUndo(t.system, environmentId, [wrong.jobId]);
    await beginUndo(jobId);
    await identify('u1', { plan: 'mine' });
    await identify('u3', { name: 'Eve' });
    const done = await runJob(t.system, environmentId, jobId);
    expect(done.tally).toMatchObject({ read: 3, updated: 3 });
    expect((await profiles()).users).toEqual({
      u1: { metadata: { plan: 'mine', seats: '5' }, company: null },
      u2: { metadata: { plan: 'pro', seats: '6' }, company: null },
      u3: { metadata: { name: 'Eve' }, company: null },
    });
  });
});

/** The stored events of the environment, and the ids that callers gave. */
async function events(): Promise<{ readonly events: readonly object[]; readonly ids: number }> {
  const { rows } = await t.system.pool.query<object>(
    `select event_id, event_type, event_name, user_id, company_id, source, inserted_at, metadata
    from sluice.events where environment_id = $1 order by event_id, user_id`,
    [environmentId],
  );
  const ids = await t.system.pool.query('select 1 from sluice.event_ids where environment_id = $1', [
    environmentId,
  ]);
  return { events: rows, ids: ids.rowCount ?? 0 };
}

describe('undoing a load of events', () => {
  const eventLine = (id: string, plan: string) =>
    JSON.stringify({
      ...{
        event_type: 'track',
        event_id: id,
        user_id: 'u1',
        event_name: 'paid',
        inserted_at: '2026-11-02T10:00:00Z',
      },
      metadata: { plan, big: '12345678901234567890' },
    });
  const wrongFile = `${eventLine('e1', 'x')}\n${eventLine('e2', 'x')}\n${JSON.stringify({ event_type: 'page_view', user_id: 'u1', metadata: { url: '/' } })}\n`;

  // proves: erased-images
  test('brings nobody back who was deleted since, and names no company that was', async () => {
    await load('user_id,company_id,plan\ngone,acme,a\nstays,acme,a\n');
    const changed = await load('user_id,plan\ngone,b\nstays,b\n');
    for (const [entity, id] of [
      ['users', 'gone'],
      ['companies', 'acme'],
    ] as const)
      await (await acceptDeletion(t.system, environmentId, entity, [id])).run();
    await undone(changed);
    const stays = { metadata: { plan: 'a' }, company: null };
    expect(await profiles()).toEqual({ users: { stays }, companies: {} });
  });

  // proves: undo
  test('removes its events and their ids, so that the corrected file loads, and so does the same file', async () => {
    const right = await load(`${eventLine('e0', 'pro')}\n`);
    const before = await events();
    const wrong = await load(wrongFile);
    const done = await undone(wrong);
    expect(done.tally).toMatchObject({ read: 3, removed: 3 });
    expect(await shown(done)).toMatchObject({ events_gone: 0, later_loads: [] });
    expect(await events()).toEqual(before);
    const corrected = await load(`${eventLine('e1', 'pro')}\n${eventLine('e2', 'pro')}\n`);
    expect(corrected.tally.inserted).toBe(2);
    const again = await load(wrongFile);
    expect(again).toMatchObject({ duplicateOf: null, tally: { inserted: 1, unchanged: 2 } });
    expect(await shown(await undone(wrong))).toMatchObject({ events_gone: 3, later_loads: [again.jobId] });
    expect(right.status).toBe('completed');
  });
});

describe('a wrong file over good data', () => {
  test('is loaded again when it is sent again after its undo, also where duplicates are skipped', async () => {
    const content = 'user_id,plan\nu1,pro\n';
    const first = await load(content);
    await undone(first);
    const again = await load(content, { ifDuplicate: 'skip' });
    expect(again).toMatchObject({ duplicateOf: null, tally: { inserted: 1 } });
  });
});

describe('the plan of an undo', () => {
  // proves: undo, plan-exact
  test('says what the undo would do and writes nothing; applied, it does that', async () => {
    await load('user_id,plan,seats\nu1,pro,5\nu2,pro,6\n');
    const wrong = await load('user_id,plan,company_id\nu1,free,acme\nu2,free,\nu3,free,acme\n');
    await identify('u2', { plan: 'mine' });
    const before = await profiles();
    const jobIds = [wrong.jobId];
    const planned = await undo(t.system, environmentId, jobIds, { plan: true });
    expect(await profiles()).toEqual(before);
    expect(planned).toMatchObject({
      status: 'completed',
      dryRun: true,
      tally: { updated: 1, removed: 2, rejected: 1 },
    });
    expect(planned.plan?.summary.profiles).toEqual({
      users: { new: 0, changed: 1, removed: 1 },
      companies: { new: 0, changed: 0, removed: 1 },
    });
    expect(await readPlannedRows(t.system, planned.jobId)).toEqual(
      expectedRows(before, {
        users: {
          u1: { metadata: { plan: 'pro', seats: '5' }, company: null },
          u2: { metadata: { plan: 'mine', seats: '6' }, company: null },
        },
        companies: {},
      }),
    );
    await applyPlan(withoutQueue(t.system), environmentId, planned.jobId, 'refuse');
    const done = await runJob(t.system, environmentId, planned.jobId);
    expect(done).toMatchObject({ status: 'completed', dryRun: false, tally: planned.tally });
    expect(Object.keys((await profiles()).users)).toEqual(['u1', 'u2']);
    expect((await load('user_id,plan\nu1,free\n', { ifDuplicate: 'skip' })).tally.updated).toBe(1);
  });

  test('is refused when a profile has changed since', async () => {
    const wrong = await load('user_id,plan\nu1,free\n');
    const planned = await undo(t.system, environmentId, [wrong.jobId], { plan: true });
    await identify('u1', { plan: 'mine' });
    await applyPlan(withoutQueue(t.system), environmentId, planned.jobId, 'refuse');
    expect(await runJob(t.system, environmentId, planned.jobId)).toMatchObject({
      failure: { code: 'plan_drifted' },
    });
    await applyPlan(withoutQueue(t.system), environmentId, planned.jobId, 'proceed');
    expect(await runJob(t.system, environmentId, planned.jobId)).toMatchObject({
      ...{ status: 'completed', tally: { read: 1, updated: 0, rejected: 1 } },
    });
  });

  test.each([
    ['max_changed', { maxChanged: { count: 1 } }],
    ['max_errors', { maxErrors: { count: 0 } }],
  ])('with %s fails if more would be done or kept, and writes nothing', async (_, guards) => {
    const wrong = await load('user_id,plan\nu1,free\nu2,free\nu3,free\n');
    await identify('u3', { plan: 'mine' });
    const before = await profiles();
    const done = await undo(t.system, environmentId, [wrong.jobId], guards);
    expect(done.status).toBe('failed');
    expect(await profiles()).toEqual(before);
    await retryLoad(withoutQueue(t.system), environmentId, done.jobId);
    expect(await runJob(t.system, environmentId, done.jobId)).toMatchObject({
      status: 'completed',
      tally: { removed: 2 },
    });
  });
});

describe('an undo', () => {
  // proves: undo
  test('names loads that came later and found something unchanged, also one that was accepted before', async () => {
    const content = 'user_id,plan\nu1,pro\n';
    const early = await load(content, { plan: true });
    const wrong = await load(content);
    const before = await load('user_id,plan\nu1,pro\nu2,pro\n');
    await applyPlan(withoutQueue(t.system), environmentId, early.jobId, 'proceed');
    await runJob(t.system, environmentId, early.jobId);
    expect((await shown(await undone(before))).later_loads).toEqual([early.jobId]);
    expect((await shown(await undone(wrong))).later_loads).toEqual([early.jobId, before.jobId]);
  });

  // proves: undo
  test('that was cancelled halfway finishes when it is retried', async () => {
    await load('user_id,plan\nu1,pro\n');
    const before = await profiles();
    const wrong = await load('user_id,plan\nu1,free\nu2,free\n');
    const jobId = await askToUndo(t.system, environmentId, [wrong.jobId]);
    await beginUndo(jobId);
    await runDueTasks(withoutQueue(t.system), [chunkJob]);
    await cancelLoad(withoutQueue(t.system), environmentId, jobId);
    await retryLoad(withoutQueue(t.system), environmentId, jobId);
    expect(await runJob(t.system, environmentId, jobId)).toMatchObject({ status: 'completed' });
    expect(await profiles()).toEqual(before);
  });

  test('refuses undos, loads that have not ended or wrote nothing, and those whose changes are no longer kept', async () => {
    const dry = await load('user_id\nu1\n', { dryRun: true });
    await expect(undone(dry)).rejects.toThrow(/wrote nothing/);
    const done = await load('user_id\nu1\n');
    const first = await askToUndo(t.system, environmentId, [done.jobId]);
    await runJob(t.system, environmentId, first);
    await expect(askToUndo(t.system, environmentId, [first])).rejects.toThrow(
      /cannot be undone: load the file/,
    );
    const open = await acceptFile(withoutQueue(t.system), environmentId, 'user_id\nu2\n');
    await expect(askToUndo(t.system, environmentId, [open])).rejects.toThrow(/is queued|is processing/);
    await runJob(t.system, environmentId, open);
    const { rows } = await t.system.pool.query<{ complete_since: string }>(
      'select complete_since from sluice.change_log',
    );
    await t.system.pool.query('update sluice.change_log set complete_since = sluice.current_position()');
    await expect(undone(done)).rejects.toThrow(/no longer kept/);
    await t.system.pool.query('update sluice.change_log set complete_since = null, complete_since_at = null');
    await expect(undone(done)).rejects.toThrow(/no longer kept/);
    await t.system.pool.query('update sluice.change_log set complete_since = $1, complete_since_at = now()', [
      rows[0]?.complete_since,
    ]);
  });

  test('of a load that was undone has nothing left to do, also if both were asked for at once', async () => {
    const wrong = await load('user_id,plan\nu1,pro\nu2,pro\n');
    const both = [
      await askToUndo(t.system, environmentId, [wrong.jobId]),
      await askToUndo(t.system, environmentId, [wrong.jobId]),
    ];
    const ended = [];
    for (const jobId of both) ended.push(await runJob(t.system, environmentId, jobId));
    expect(ended.map(({ status, tally }) => [status, tally.removed, tally.read])).toEqual([
      ['completed', 2, 2],
      ['completed', 0, 0],
    ]);
  });

  // proves: undo
  test('retried after another one leaves alone what later loads brought, though it is the same again', async () => {
    const event = (plan: string) =>
      `${JSON.stringify({
        ...{ event_type: 'track', event_id: 'e1', user_id: 'u1', event_name: 'paid' },
        ...{ inserted_at: '2026-11-02T10:00:00Z', metadata: { plan } },
      })}\n`;
    const users =
      '{"user_id":"u1","company_id":"c1","metadata":{"a":"1"}}\n{"user_id":"u2","metadata":{"a":"1"}}\n';
    await load('{"user_id":"u2","metadata":{"a":"0"}}\n');
    const wrong = await load(event('x') + users);
    const jobId = await askToUndo(t.system, environmentId, [wrong.jobId]);
    await beginUndo(jobId);
    await cancelLoad(withoutQueue(t.system), environmentId, jobId);
    await undone(wrong);
    await load(event('pro') + users);
    const before = [await profiles(), await events()];
    await retryLoad(withoutQueue(t.system), environmentId, jobId);
    expect(await runJob(t.system, environmentId, jobId)).toMatchObject({ status: 'completed' });
    expect([await profiles(), await events()]).toEqual(before);
  });

  // proves: undo
  test('of a cancelled load leaves nothing to retry, from when it is asked for', async () => {
    const wrong = await load('user_id,plan\nu1,pro\n');
    await sql`update loads set status = 'cancelled' where job_id = ${wrong.jobId}`.execute(t.system.db);
    const refused = { problems: [{ code: 'job_not_retryable', message: expect.stringContaining('undone') }] };
    const jobId = await askToUndo(t.system, environmentId, [wrong.jobId]);
    await expect(retryLoad(withoutQueue(t.system), environmentId, wrong.jobId)).rejects.toMatchObject(
      refused,
    );
    await runJob(t.system, environmentId, jobId);
    await expect(retryLoad(withoutQueue(t.system), environmentId, wrong.jobId)).rejects.toMatchObject(
      refused,
    );
  });
});
