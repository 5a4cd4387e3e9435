import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { HOLD_EXPIRED } from '../../src/domain/load.ts';
import { prune } from '../../src/jobs/prune.ts';
import { cancelLoad, failLoad } from '../../src/load/end.ts';
import { requireLoad } from '../../src/load/read-store.ts';
import { releaseLoad, retryLoad } from '../../src/load/retry.ts';
import { heldLoad, usersOf } from '../support/files/guard.ts';
import {
  acceptFile,
  endedLoad,
  manualLoad,
  readProfiles,
  runManually,
  startManually,
  withoutQueue,
} from '../support/files/load-file.ts';
import { acceptDeletion } from '../support/servers/deletions.ts';
import { systemOfFile } from '../support/servers/system.ts';

const person = { kind: 'command_line', name: null } as const;
const t = await systemOfFile({ worker: true });

let environments = 0;
async function tenant() {
  const { environment } = await t.addEnvironment(`guarded-${++environments}`);
  return environment;
}

const show = (environmentId: number, jobId: string) => requireLoad(t.system, environmentId, jobId);
const countUsers = async (environmentId: number) =>
  Object.keys((await readProfiles(t.system, environmentId)).users).length;

describe('a load with guard=usual', () => {
  // proves: guard-usual
  test('guard=usual does not compare with plans and dry runs, which store nothing', async () => {
    const { environmentId } = await tenant();
    const night = (rows: number, more = {}) => {
      const filename = `crm-${rows}.csv`;
      return startManually(t.system, environmentId, usersOf(rows), { filename, guard: 'usual', ...more });
    };
    for (const rows of [100, 101, 102]) await runManually(await night(rows));
    for (const more of [{ plan: true }, { dryRun: true }])
      expect(await runManually(await night(10, more))).toMatchObject({ status: 'completed' });
    expect(await runManually(await night(11))).toMatchObject({ status: 'held' });
  });

  // proves: guard-usual
  test('guard=usual does not compare a file with arrays of the same name', async () => {
    const { environmentId } = await tenant();
    const night = async (rows: number) =>
      runManually(
        await startManually(t.system, environmentId, usersOf(rows), { filename: 'crm.csv', guard: 'usual' }),
      );
    for (const rows of [100, 101, 102]) await night(rows);
    await sql`update loads set type = 'bulk_identify_users' where environment_id = ${environmentId}`.execute(
      t.system.db,
    );
    expect(await night(11)).toMatchObject({ status: 'completed' });
  });

  // proves: guard-usual, environments-apart
  test('guard=usual does not compare with loads of another environment', async () => {
    const one = await tenant();
    const other = await tenant();
    const night = async ({ environmentId }: typeof one, rows: number) =>
      runManually(
        await startManually(t.system, environmentId, usersOf(rows), {
          filename: 'apart.csv',
          guard: 'usual',
        }),
      );
    for (const rows of [100, 101, 102]) await night(one, rows);
    expect(await night(other, 11)).toMatchObject({ status: 'completed' });
  });
});

describe('a held load', () => {
  const options = { guard: { rows: '10..' } } as const;
  async function hold(environmentId: number, more = {}) {
    const load = await startManually(t.system, environmentId, usersOf(5), { ...options, ...more });
    return runManually(load);
  }

  test.each([
    ['in one chunk', {}],
    ['in chunks of a record', { chunkBytes: 1 }],
    ['with a limit of changed profiles', { maxChanged: { percent: 100 }, chunkBytes: 1 }],
  ])('a held load is loaded whole after its release, %s', async (_, more) => {
    const { environmentId } = await tenant();
    const { jobId, status } = await hold(environmentId, more);
    expect(status).toBe('held');
    expect(await countUsers(environmentId)).toBe(0);
    await releaseLoad(t.system, environmentId, jobId, person);
    expect(await endedLoad(t.system, environmentId, jobId)).toMatchObject({
      status: 'completed',
      tally: { read: 5, inserted: 5, rejected: 0 },
    });
  });

  test('a load within its guard is loaded at once', async () => {
    const { environmentId } = await tenant();
    const jobId = await acceptFile(t.system, environmentId, usersOf(12), { ...options, chunkBytes: 50 });
    expect(await endedLoad(t.system, environmentId, jobId)).toMatchObject({
      status: 'completed',
      held: null,
    });
    expect(await countUsers(environmentId)).toBe(12);
  });

  test('a guarded load fails instead of being held if all its records are refused', async () => {
    const { environmentId } = await tenant();
    const jobId = await acceptFile(t.system, environmentId, usersOf(5, { refused: 5 }), options);
    expect(await endedLoad(t.system, environmentId, jobId)).toMatchObject({
      failure: { code: 'all_records_refused' },
    });
  });

  // proves: guard-released
  test('a held load is released once by simultaneous callers', async () => {
    const { environmentId } = await tenant();
    const { jobId } = await hold(environmentId);
    const load = await manualLoad(t.system, environmentId, jobId);
    const quiet = withoutQueue(t.system);
    await Promise.all(Array.from({ length: 4 }, () => releaseLoad(quiet, environmentId, jobId, person)));
    await runManually(load);
    expect(await endedLoad(t.system, environmentId, jobId)).toMatchObject({
      status: 'completed',
      tally: { inserted: 5 },
    });
  });

  // proves: guard-holds, guard-released
  test('a held load that was discarded is held again when it is retried', async () => {
    const { environmentId } = await tenant();
    const { jobId } = await hold(environmentId);
    await cancelLoad(t.system, environmentId, jobId, null, person);
    await retryLoad(t.system, environmentId, jobId);
    expect(await heldLoad(t, environmentId)).toMatchObject({
      jobId,
      held: { decidedAt: null, decidedBy: null },
    });
    expect(await countUsers(environmentId)).toBe(0);
    await releaseLoad(t.system, environmentId, jobId, person);
    expect(await endedLoad(t.system, environmentId, jobId)).toMatchObject({ status: 'completed' });
  });

  // proves: guard-holds
  test.each([
    ['refused records', { maxErrors: { count: 0 }, chunkBytes: 1 }, 'too_many_rejects'],
    ['changed profiles', { maxChanged: { count: 0 } }, 'guard_exceeded'],
  ])('a load is still held if its retry accepts its %s', async (_, limit, code) => {
    const { environmentId } = await tenant();
    await acceptFile(t.system, environmentId, usersOf(4)).then((jobId) =>
      endedLoad(t.system, environmentId, jobId),
    );
    const load = await startManually(t.system, environmentId, usersOf(5, { refused: 1 }), {
      ...options,
      ...limit,
    });
    const failed = await runManually(load);
    expect(failed.failure?.code).toBe(code);
    await retryLoad(t.system, environmentId, load.jobId);
    expect(await heldLoad(t, environmentId)).toMatchObject({ jobId: load.jobId, tally: { rejected: 1 } });
  });

  // proves: guard-released
  test('a held load that was released in time does not expire', async () => {
    const { environmentId } = await tenant();
    const { jobId } = await hold(environmentId);
    const load = await manualLoad(t.system, environmentId, jobId);
    await releaseLoad(withoutQueue(t.system), environmentId, jobId, person);
    await failLoad(t.system, load.loadId, { code: HOLD_EXPIRED, message: 'too late' });
    await runManually(load);
    expect(await endedLoad(t.system, environmentId, jobId)).toMatchObject({
      status: 'completed',
      tally: { inserted: 5 },
    });
  });

  // proves: deletion-order
  test('a held load cannot be released after a deletion, and fails when the deletion removes its file', async () => {
    const { environmentId } = await tenant();
    const { jobId } = await hold(environmentId);
    const deletion = await acceptDeletion(withoutQueue(t.system), environmentId, 'users', ['u1']);
    await expect(releaseLoad(t.system, environmentId, jobId, person)).rejects.toMatchObject({
      problems: [{ code: 'job_expired' }],
    });
    expect(await show(environmentId, jobId)).toMatchObject({ status: 'held' });
    expect(await deletion.run()).toMatchObject({ status: 'completed' });
    expect(await show(environmentId, jobId)).toMatchObject({
      status: 'failed',
      hasFile: false,
      failure: { code: 'job_expired' },
    });
  });

  // proves: guard-released
  test('a held load fails when its file expires, and the file is removed', async () => {
    const { environmentId } = await tenant();
    const { jobId } = await hold(environmentId);
    await prune(t.system);
    expect(await show(environmentId, jobId)).toMatchObject({ status: 'held', hasFile: true });
    await sql`
      update load_guards set held_at = now() - interval '1000 days'
      where load_id = (select load_id from loads where job_id = ${jobId})`.execute(t.system.db);
    await prune(t.system);
    expect(await show(environmentId, jobId)).toMatchObject({
      status: 'failed',
      hasFile: false,
      failure: { code: 'hold_expired' },
    });
    expect(await countUsers(environmentId)).toBe(0);
  });

  test('a guard of columns is refused at once for a file without columns', async () => {
    const { environmentId } = await tenant();
    const guard = { columns: ['user_id'] };
    await expect(acceptFile(t.system, environmentId, '{"user_id":"u1"}\n', { guard })).rejects.toMatchObject({
      problems: [{ code: 'invalid_field', details: 'guard' }],
    });
  });
});
