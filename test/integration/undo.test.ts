import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startLane } from '../../src/load/end-load.ts';
import { writeUsers } from '../../src/postgres/stores/profiles.ts';
import type { Load } from '../../src/postgres/stores/read-loads.ts';
import {
  type FileOptions,
  manualLoad,
  newEnvironment,
  readProfiles,
  readRejects,
  withoutQueue,
} from '../support/load-file.ts';
import { openTestSystem, type TestSystem } from '../support/system.ts';
import { askToUndo, loadFile, runJob, undo } from '../support/undo.ts';

let t: TestSystem;
let environmentId: number;

beforeAll(async () => {
  t = await openTestSystem();
});
afterAll(() => t.close());
beforeEach(async () => {
  environmentId = await newEnvironment(t.system);
});

const load = (content: string, options: FileOptions = {}): Promise<Load> =>
  loadFile(t.system, environmentId, content, options);
const profiles = () => readProfiles(t.system, environmentId);
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
    const [kept] = await readRejects(t.system, done.jobId);
    expect(kept).toMatchObject({ code: 'changed_since', column: 'plan' });
    expect(JSON.parse(Buffer.from(kept?.raw ?? []).toString())).toEqual({
      ...{ entity: 'users', id: 'u2', kept: ['plan'] },
    });
  });

  test('keeps a company that it made while others belong to it', async () => {
    const wrong = await load(
      '{"company_id":"acme","metadata":{"size":"9"}}\n{"user_id":"u1","company_id":"acme"}\n',
    );
    await identify('u2', { a: '1' }, 'acme');
    await undone(wrong);
    expect(await profiles()).toEqual({
      users: { u2: { metadata: { a: '1' }, company: 'acme' } },
      companies: { acme: { metadata: {} } },
    });
  });

  test('is undone by an undo of the undo', async () => {
    await load('user_id,plan\nu1,pro\n');
    const other = await load('user_id,plan,company_id\nu1,free,acme\nu2,free,acme\n');
    const after = await profiles();
    const first = await undone(other);
    const second = await undone(first);
    expect(second.tally).toMatchObject({ updated: 1, inserted: 2, rejected: 0 });
    expect(await profiles()).toEqual(after);
    await undone(other);
    expect(await profiles()).toEqual({
      users: { u1: { metadata: { plan: 'pro' }, company: null } },
      companies: {},
    });
  });

  test('of several loads at once puts back what was before them', async () => {
    await load('user_id,plan\nu1,pro\n');
    const [a, b] = [await load('user_id,plan\nu1,free\n'), await load('user_id,plan,x\nu1,trial,1\n')];
    await undone(a, b);
    expect(await profiles()).toMatchObject({ users: { u1: { metadata: { plan: 'pro' } } } });
  });

  test('of some properties leaves all others', async () => {
    const wrong = await load('user_id,plan,x\nu1,free,1\n');
    await undo(t.system, environmentId, [wrong.jobId], { properties: ['plan'] });
    expect(await profiles()).toMatchObject({ users: { u1: { metadata: { x: '1' } } } });
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
