import { sql } from 'kysely';
import { beforeEach, describe, expect, test } from 'vitest';
import { chunkJob } from '../../../jobs/load.ts';
import type { UndoFields } from '../../../src/capabilities/undo/api.ts';
import type { LoadContext } from '../../../src/load/context.ts';
import { cancelLoad, startLane } from '../../../src/load/end.ts';
import { type Load, readShown } from '../../../src/load/read-store.ts';
import { applyPlan, retryLoad } from '../../../src/load/retry.ts';
import {
  acceptFile,
  type FileOptions,
  loadFile,
  manualLoad,
  newEnvironment,
  readProfiles,
  readRejects,
  runJob,
  startManually,
  withoutQueue,
} from '../../support/files/load-file.ts';
import { expectedRows, readPlannedRows } from '../../support/oracles/plans.ts';
import { acceptDeletion } from '../../support/servers/deletions.ts';
import { closedGate } from '../../support/servers/gate.ts';
import { systemOfFile } from '../../support/servers/system.ts';
import { runDueTasks } from '../../support/servers/tasks.ts';
import { writeUsers } from '../../support/servers/write-users.ts';
import { waitFor } from '../../support/wait-for.ts';
import { askToUndo, undo } from './support/undo.ts';

const t = await systemOfFile();
let environmentId: number;

beforeEach(async () => {
  environmentId = await newEnvironment(t.system);
});

const load = (content: string, options: FileOptions = {}): Promise<Load> =>
  loadFile(t.system, environmentId, content, options);
const profiles = () => readProfiles(t.system, environmentId);
const undoFields = async (load: Load) =>
  (await readShown(t.system, environmentId, load)).fields['undo'] as NonNullable<UndoFields['undo']>;

const undoLoads = (...loads: readonly Load[]): Promise<Load> =>
  undo(
    t.system,
    environmentId,
    loads.map(({ jobId }) => jobId),
  );

const identify = (userId: string, properties: object, companyId: string | null = null): Promise<void> =>
  writeUsers(
    t.system.pool,
    [{ environmentId, key: userId, companyId, properties: JSON.stringify(properties), removes: false }],
    companyId === null ? [] : [{ environmentId, key: companyId, properties: '{}', removes: false }],
  );

async function beginUndo(jobId: string): Promise<void> {
  await startLane(withoutQueue(t.system), environmentId);
  await (await manualLoad(t.system, environmentId, jobId)).begin();
}

// proves: undo
test('an undo restores changes and removes new profiles, except for later changes', async () => {
  await load('user_id,plan,seats\nu1,pro,5\nu2,pro,6\nu3,pro,7\n');
  await load('{"user_id":"u1","metadata":{"digits":12345678901234567890.10}}\n');
  const profilesBefore = await profiles();
  const wrongLoad = await load(
    'user_id,plan,company_id\nu1,free,acme\nu2,free,\nu4,free,acme\nu5,free,acme\n',
  );
  await identify('u2', { plan: 'trial' });
  await identify('u5', { name: 'Eve' });
  const ended = await undoLoads(wrongLoad);
  expect(ended).toMatchObject({ status: 'completed', tally: { updated: 2, removed: 2, rejected: 1 } });
  expect(await profiles()).toEqual({
    users: {
      ...profilesBefore.users,
      u2: { metadata: { plan: 'trial', seats: '6' }, company: null },
      u5: { metadata: { name: 'Eve' }, company: null },
    },
    companies: {},
  });
  const { rows } = await sql`select metadata ->> 'digits' as digits from users
      where environment_id = ${environmentId} and user_id = 'u1'`.execute(t.system.db);
  expect(rows).toEqual([{ digits: '12345678901234567890.10' }]);
  const [reject] = await readRejects(t.system, ended.jobId);
  expect(reject).toMatchObject({ code: 'changed_since', column: 'plan' });
  expect(JSON.parse(Buffer.from(reject?.raw ?? []).toString())).toEqual({
    entity: 'users',
    id: 'u2',
    kept: ['plan'],
  });
});

test('records that arrive while the chunks of an undo wait are kept', async () => {
  await load('user_id,plan,seats\nu1,pro,5\nu2,pro,6\n');
  const wrongLoad = await load('user_id,plan,seats\nu1,free,0\nu2,free,0\nu3,free,0\n');
  const jobId = await askToUndo(t.system, environmentId, [wrongLoad.jobId]);
  await beginUndo(jobId);
  await identify('u1', { plan: 'mine' });
  await identify('u3', { name: 'Eve' });
  const ended = await runJob(t.system, environmentId, jobId);
  expect(ended.tally).toMatchObject({ read: 3, updated: 3 });
  expect((await profiles()).users).toEqual({
    u1: { metadata: { plan: 'mine', seats: '5' }, company: null },
    u2: { metadata: { plan: 'pro', seats: '6' }, company: null },
    u3: { metadata: { name: 'Eve' }, company: null },
  });
});

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

describe('the undo of a load of events', () => {
  const eventLine = (id: string, plan: string) =>
    JSON.stringify({
      event_type: 'track',
      event_id: id,
      user_id: 'u1',
      event_name: 'paid',
      inserted_at: '2026-11-02T10:00:00Z',
      metadata: { plan, big: '12345678901234567890' },
    });
  const wrongFile = `${eventLine('e1', 'x')}\n${eventLine('e2', 'x')}\n${JSON.stringify({ event_type: 'page_view', user_id: 'u1', metadata: { url: '/' } })}\n`;

  // proves: erased-images
  test('an undo restores no person and no company that was deleted since', async () => {
    await load('user_id,company_id,plan\ngone,acme,a\nstays,acme,a\n');
    const changedLoad = await load('user_id,plan\ngone,b\nstays,b\n');
    for (const [entity, id] of [
      ['users', 'gone'],
      ['companies', 'acme'],
    ] as const)
      await (await acceptDeletion(t.system, environmentId, entity, [id])).run();
    await undoLoads(changedLoad);
    const stays = { metadata: { plan: 'a' }, company: null };
    expect(await profiles()).toEqual({ users: { stays }, companies: {} });
  });

  // proves: undo
  test('an undo removes events with their ids, so that any file can be loaded again', async () => {
    const rightLoad = await load(`${eventLine('e0', 'pro')}\n`);
    const eventsBefore = await events();
    const wrongLoad = await load(wrongFile);
    const ended = await undoLoads(wrongLoad);
    expect(ended.tally).toMatchObject({ read: 3, removed: 3 });
    expect(await undoFields(ended)).toMatchObject({ events_gone: 0, later_loads: [] });
    expect(await events()).toEqual(eventsBefore);
    const corrected = await load(`${eventLine('e1', 'pro')}\n${eventLine('e2', 'pro')}\n`);
    expect(corrected.tally.inserted).toBe(2);
    const repeated = await load(wrongFile);
    expect(repeated).toMatchObject({ duplicateOf: null, tally: { inserted: 1, unchanged: 2 } });
    expect(await undoFields(await undoLoads(wrongLoad))).toMatchObject({
      events_gone: 3,
      later_loads: [repeated.jobId],
    });
    expect(rightLoad.status).toBe('completed');
  });
});

test('an undone file is loaded again, even if duplicates are skipped', async () => {
  const content = 'user_id,plan\nu1,pro\n';
  const firstLoad = await load(content);
  await undoLoads(firstLoad);
  const repeated = await load(content, { ifDuplicate: 'skip' });
  expect(repeated).toMatchObject({ duplicateOf: null, tally: { inserted: 1 } });
});

describe('the plan of an undo', () => {
  // proves: undo, plan-exact
  test('a plan has exactly the changes of its undo, and writes nothing until applied', async () => {
    await load('user_id,plan,seats\nu1,pro,5\nu2,pro,6\n');
    const wrongLoad = await load('user_id,plan,company_id\nu1,free,acme\nu2,free,\nu3,free,acme\n');
    await identify('u2', { plan: 'mine' });
    const profilesBefore = await profiles();
    const jobIds = [wrongLoad.jobId];
    const plannedUndo = await undo(t.system, environmentId, jobIds, { plan: true });
    expect(await profiles()).toEqual(profilesBefore);
    expect(plannedUndo).toMatchObject({
      status: 'completed',
      dryRun: true,
      tally: { updated: 1, removed: 2, rejected: 1 },
    });
    expect(plannedUndo.plan?.summary.profiles).toEqual({
      users: { new: 0, changed: 1, removed: 1 },
      companies: { new: 0, changed: 0, removed: 1 },
    });
    expect(await readPlannedRows(t.system, plannedUndo.jobId)).toEqual(
      expectedRows(profilesBefore, {
        users: {
          u1: { metadata: { plan: 'pro', seats: '5' }, company: null },
          u2: { metadata: { plan: 'mine', seats: '6' }, company: null },
        },
        companies: {},
      }),
    );
    await applyPlan(withoutQueue(t.system), environmentId, plannedUndo.jobId, 'refuse');
    const ended = await runJob(t.system, environmentId, plannedUndo.jobId);
    expect(ended).toMatchObject({ status: 'completed', dryRun: false, tally: plannedUndo.tally });
    expect(Object.keys((await profiles()).users)).toEqual(['u1', 'u2']);
    expect((await load('user_id,plan\nu1,free\n', { ifDuplicate: 'skip' })).tally.updated).toBe(1);
  });

  test('a plan is refused if a profile has changed since', async () => {
    const wrongLoad = await load('user_id,plan\nu1,free\n');
    const plannedUndo = await undo(t.system, environmentId, [wrongLoad.jobId], { plan: true });
    await identify('u1', { plan: 'mine' });
    await applyPlan(withoutQueue(t.system), environmentId, plannedUndo.jobId, 'refuse');
    expect(await runJob(t.system, environmentId, plannedUndo.jobId)).toMatchObject({
      failure: { code: 'plan_drifted' },
    });
    await applyPlan(withoutQueue(t.system), environmentId, plannedUndo.jobId, 'proceed');
    expect(await runJob(t.system, environmentId, plannedUndo.jobId)).toMatchObject({
      status: 'completed',
      tally: { read: 1, updated: 0, rejected: 1 },
    });
  });

  test.each([
    ['max_changed', { maxChanged: { count: 1 } }],
    ['max_errors', { maxErrors: { count: 0 } }],
  ])('an undo that exceeds %s fails and writes nothing, until a retry omits the limit', async (_, guards) => {
    const wrongLoad = await load('user_id,plan\nu1,free\nu2,free\nu3,free\n');
    await identify('u3', { plan: 'mine' });
    const profilesBefore = await profiles();
    const ended = await undo(t.system, environmentId, [wrongLoad.jobId], guards);
    expect(ended.status).toBe('failed');
    expect(await profiles()).toEqual(profilesBefore);
    await retryLoad(withoutQueue(t.system), environmentId, ended.jobId);
    expect(await runJob(t.system, environmentId, ended.jobId)).toMatchObject({
      status: 'completed',
      tally: { removed: 2 },
    });
  });
});

test('an undo with a limit that has nothing to undo completes', async () => {
  const wrongLoad = await load('user_id,plan\nu1,pro\n');
  await undoLoads(wrongLoad);
  const ended = await undo(t.system, environmentId, [wrongLoad.jobId], { maxChanged: { count: 1 } });
  expect(ended).toMatchObject({ status: 'completed', tally: { read: 0 } });
});

describe('a load that is to be undone', () => {
  let jobId: string;

  beforeEach(async () => {
    const content = 'user_id,plan\nu1,pro\nu2,pro\n';
    const wrongLoad = await startManually(t.system, environmentId, content, { chunkBytes: 1 });
    await wrongLoad.chunk(0);
    ({ jobId } = wrongLoad);
    await cancelLoad(withoutQueue(t.system), environmentId, jobId);
  });

  test('a load cannot be retried while an undo with a limit is queued', async () => {
    await askToUndo(t.system, environmentId, [jobId], { maxChanged: { count: 1 } });
    await expect(retryLoad(withoutQueue(t.system), environmentId, jobId)).rejects.toThrow(/is undone/);
  });

  test('a load cannot be retried while the plan of its undo waits to be applied', async () => {
    const planned = await undo(t.system, environmentId, [jobId], { plan: true });
    await startManually(t.system, environmentId, 'user_id\nu3\n');
    await applyPlan(withoutQueue(t.system), environmentId, planned.jobId, 'refuse');
    await expect(retryLoad(withoutQueue(t.system), environmentId, jobId)).rejects.toThrow(/is undone/);
  });

  test('a load that is being retried at the same time cannot be undone', async () => {
    const retrying = closedGate();
    const acts = {
      record: async (...act: Parameters<LoadContext['acts']['record']>) => {
        await t.system.acts.record(...act);
        await retrying.pass();
      },
    } as LoadContext['acts'];
    const retry = retryLoad({ ...withoutQueue(t.system), acts }, environmentId, jobId);
    await retrying.arrived;
    let isSettled = false;
    const undone = expect(
      askToUndo(t.system, environmentId, [jobId]).finally(() => {
        isSettled = true;
      }),
    ).rejects.toThrow(/is queued/);
    await waitFor('the undo to wait', async () => {
      const { rowCount } = await t.system.pool.query(
        `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
      );
      return isSettled || rowCount === 1;
    });
    retrying.open();
    await Promise.all([retry, undone]);
  });
});

describe('the undo of any load', () => {
  // proves: undo
  test('an undo names later loads of equal values, even if accepted before', async () => {
    const content = 'user_id,plan\nu1,pro\n';
    const earlyPlan = await load(content, { plan: true });
    const wrongLoad = await load(content);
    const secondLoad = await load('user_id,plan\nu1,pro\nu2,pro\n');
    await applyPlan(withoutQueue(t.system), environmentId, earlyPlan.jobId, 'proceed');
    await runJob(t.system, environmentId, earlyPlan.jobId);
    expect((await undoFields(await undoLoads(secondLoad))).later_loads).toEqual([earlyPlan.jobId]);
    expect((await undoFields(await undoLoads(wrongLoad))).later_loads).toEqual([
      earlyPlan.jobId,
      secondLoad.jobId,
    ]);
  });

  // proves: undo
  test('an undo that was cancelled halfway completes when it is retried', async () => {
    await load('user_id,plan\nu1,pro\n');
    const profilesBefore = await profiles();
    const wrongLoad = await load('user_id,plan\nu1,free\nu2,free\n');
    const jobId = await askToUndo(t.system, environmentId, [wrongLoad.jobId]);
    await beginUndo(jobId);
    await runDueTasks(withoutQueue(t.system), [chunkJob]);
    await cancelLoad(withoutQueue(t.system), environmentId, jobId);
    await retryLoad(withoutQueue(t.system), environmentId, jobId);
    expect(await runJob(t.system, environmentId, jobId)).toMatchObject({ status: 'completed' });
    expect(await profiles()).toEqual(profilesBefore);
  });

  test('undos, open loads, dry runs and loads without change log cannot be undone', async () => {
    const dryRun = await load('user_id\nu1\n', { dryRun: true });
    await expect(undoLoads(dryRun)).rejects.toThrow(/wrote nothing/);
    const ended = await load('user_id\nu1\n');
    const firstUndo = await askToUndo(t.system, environmentId, [ended.jobId]);
    await runJob(t.system, environmentId, firstUndo);
    await expect(askToUndo(t.system, environmentId, [firstUndo])).rejects.toThrow(
      /cannot be undone\. Load the file/,
    );
    const openJob = await acceptFile(withoutQueue(t.system), environmentId, 'user_id\nu2\n');
    await expect(askToUndo(t.system, environmentId, [openJob])).rejects.toThrow(/is queued|is processing/);
    await runJob(t.system, environmentId, openJob);
    const { rows } = await t.system.pool.query<{ complete_since: string }>(
      'select complete_since from sluice.change_log',
    );
    await t.system.pool.query('update sluice.change_log set complete_since = sluice.current_position()');
    await expect(undoLoads(ended)).rejects.toThrow(/no longer kept/);
    await t.system.pool.query('update sluice.change_log set complete_since = null, complete_since_at = null');
    await expect(undoLoads(ended)).rejects.toThrow(/no longer kept/);
    await t.system.pool.query('update sluice.change_log set complete_since = $1, complete_since_at = now()', [
      rows[0]?.complete_since,
    ]);
  });

  test('a second undo of a load has nothing to do, even if both wait together', async () => {
    const wrongLoad = await load('user_id,plan\nu1,pro\nu2,pro\n');
    const undoJobs = [
      await askToUndo(t.system, environmentId, [wrongLoad.jobId]),
      await askToUndo(t.system, environmentId, [wrongLoad.jobId]),
    ];
    const ended = [];
    for (const jobId of undoJobs) ended.push(await runJob(t.system, environmentId, jobId));
    expect(ended.map(({ status, tally }) => [status, tally.removed, tally.read])).toEqual([
      ['completed', 2, 2],
      ['completed', 0, 0],
    ]);
  });

  // proves: undo
  test('an undo that is retried after another leaves the records of later loads', async () => {
    const event = (plan: string) =>
      `${JSON.stringify({
        event_type: 'track',
        event_id: 'e1',
        user_id: 'u1',
        event_name: 'paid',
        inserted_at: '2026-11-02T10:00:00Z',
        metadata: { plan },
      })}\n`;
    const users =
      '{"user_id":"u1","company_id":"c1","metadata":{"a":"1"}}\n{"user_id":"u2","metadata":{"a":"1"}}\n';
    await load('{"user_id":"u2","metadata":{"a":"0"}}\n');
    const wrongLoad = await load(event('x') + users);
    const jobId = await askToUndo(t.system, environmentId, [wrongLoad.jobId]);
    await beginUndo(jobId);
    await cancelLoad(withoutQueue(t.system), environmentId, jobId);
    await undoLoads(wrongLoad);
    await load(event('pro') + users);
    const contentBefore = [await profiles(), await events()];
    await retryLoad(withoutQueue(t.system), environmentId, jobId);
    expect(await runJob(t.system, environmentId, jobId)).toMatchObject({ status: 'completed' });
    expect([await profiles(), await events()]).toEqual(contentBefore);
  });

  // proves: undo
  test('the undo of a cancelled load ends its retries once it is requested', async () => {
    const wrongLoad = await load('user_id,plan\nu1,pro\n');
    await sql`update loads set status = 'cancelled' where job_id = ${wrongLoad.jobId}`.execute(t.system.db);
    const refusal = { problems: [{ code: 'job_not_retryable', message: expect.stringContaining('undone') }] };
    const jobId = await askToUndo(t.system, environmentId, [wrongLoad.jobId]);
    await expect(retryLoad(withoutQueue(t.system), environmentId, wrongLoad.jobId)).rejects.toMatchObject(
      refusal,
    );
    await runJob(t.system, environmentId, jobId);
    await expect(retryLoad(withoutQueue(t.system), environmentId, wrongLoad.jobId)).rejects.toMatchObject(
      refusal,
    );
  });
});
