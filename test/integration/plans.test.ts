import { describe, expect, onTestFinished, test } from 'vitest';
import type { OnDrift } from '../../src/domain/load.ts';
import { cancelLoad } from '../../src/load/end.ts';
import { applyPlan, retryLoad } from '../../src/load/retry.ts';
import { forgetFiles } from '../../src/load/store.ts';
import { switchChangeLog } from '../../src/postgres/change-log.ts';
import {
  type FileOptions,
  manualLoad,
  newEnvironment,
  readProfiles,
  readRejects,
  readVersions,
  runManually,
  startManually,
  withoutQueue,
} from '../support/files/load-file.ts';
import { readPlannedRows } from '../support/oracles/plans.ts';
import { connectTo } from '../support/servers/connect.ts';
import { acceptDeletion } from '../support/servers/deletions.ts';
import { systemOfFile } from '../support/servers/system.ts';
import { writeCompanies, writeUsers } from '../support/servers/write-users.ts';

const t = await systemOfFile();

const lines = (...records: readonly object[]): string =>
  records.map((record) => `${JSON.stringify(record)}\n`).join('');
const user = (user_id: string, metadata: object, rest: object = {}): object => ({
  user_id,
  metadata,
  ...rest,
});

async function load(environmentId: number, content: string, options: FileOptions = {}) {
  return runManually(await startManually(t.system, environmentId, content, options));
}

/** Applies a plan and runs the load to its end. */
async function apply(environmentId: number, jobId: string, onDrift: OnDrift = 'refuse') {
  const quiet = withoutQueue(t.system);
  await applyPlan(quiet, environmentId, jobId, onDrift);
  return runManually(await manualLoad(quiet, environmentId, jobId));
}

const identify = (environmentId: number, key: string, properties: object, companyId: string | null = null) =>
  writeUsers(
    t.system.pool,
    [{ environmentId, key, companyId, properties: JSON.stringify(properties), removes: false }],
    [],
  );

const stored = lines(user('same', { a: 1 }), user('other', { a: 1 }), user('out', { a: 1 }));
const file = lines(
  user('same', { a: 1 }),
  user('other', { a: 2 }),
  user('new', { a: 1 }),
  user('twice', { a: 1 }),
  user('twice', { a: 2 }, { company_id: 'firm' }),
);

describe.each([{ chunkBytes: 1 }, { chunkBytes: 10_000 }])(
  'a plan in chunks of $chunkBytes bytes',
  (options) => {
    async function planned(): Promise<{ environmentId: number; jobId: string }> {
      const environmentId = await newEnvironment(t.system);
      await load(environmentId, stored);
      const { jobId, status } = await load(environmentId, file, { ...options, plan: true });
      expect(status).toBe('completed');
      return { environmentId, jobId };
    }

    // proves: plan-once
    test('a plan is applied once, counts from the start, and keeps its summary', async () => {
      const { environmentId, jobId } = await planned();
      const applied = await apply(environmentId, jobId);
      expect(applied).toMatchObject({
        status: 'completed',
        dryRun: false,
        tally: { read: 5, inserted: 2, updated: 1, unchanged: 1, superseded: 1, rejected: 0 },
        plan: { summary: { profiles: { users: { new: 2, changed: 1 }, companies: { new: 1, changed: 0 } } } },
      });
      const { users } = await readProfiles(t.system, environmentId);
      expect(users['twice']).toEqual({ metadata: { a: 2 }, company: 'firm' });
      await expect(applyPlan(t.system, environmentId, jobId, 'proceed')).rejects.toMatchObject({
        problems: [{ code: 'plan_already_applied' }],
      });
    });

    // proves: plan-once
    test.each([
      ['a profile that was new is there', 'new', { a: 1 }],
      ['a profile that would change has changed', 'other', { b: 1 }],
      ['a profile that would not change has changed', 'same', { b: 1 }],
      ['a profile of several records is there', 'twice', { b: 1 }],
      ['a user that would change has come to a company', 'other', { a: 1 }, 'firm'],
    ] as [string, string, object, string?][])(
      'a plan is refused without any effect if %s, and is loaded all the same on request',
      async (_, key, properties, companyId?: string) => {
        const { environmentId, jobId } = await planned();
        await identify(environmentId, key, properties, companyId);
        const before = await readVersions(t.system, environmentId);
        const refused = await apply(environmentId, jobId);
        expect(refused.status).toBe('failed');
        expect(refused.failure).toMatchObject({ code: 'plan_drifted' });
        expect(refused.failure?.message).toMatch(
          /^1 profile has changed since the plan; .* \(0 rows had been applied\)$/,
        );
        expect(await readVersions(t.system, environmentId)).toEqual(before);
        expect(await readPlannedRows(t.system, jobId)).not.toEqual([]);
        expect(await apply(environmentId, jobId, 'proceed')).toMatchObject({ status: 'completed' });
        const { users } = await readProfiles(t.system, environmentId);
        expect(users['other']?.metadata).toMatchObject({ a: 2 });
      },
    );

    test('a plan is applied although other profiles changed and its own were written again unchanged', async () => {
      const { environmentId, jobId } = await planned();
      await identify(environmentId, 'out', { a: 2 });
      await identify(environmentId, 'other', { a: 1 });
      await identify(environmentId, 'same', { a: 1 });
      expect(await apply(environmentId, jobId)).toMatchObject({ status: 'completed' });
    });

    test('a plan that drifted is planned again by a retry, and can then be applied', async () => {
      const { environmentId, jobId } = await planned();
      await identify(environmentId, 'new', { a: 1 });
      expect(await apply(environmentId, jobId)).toMatchObject({ status: 'failed' });
      const quiet = withoutQueue(t.system);
      await retryLoad(quiet, environmentId, jobId);
      const again = await manualLoad(quiet, environmentId, jobId);
      expect(await again.begin()).toMatchObject({ status: 'processing', pass: 'plan', plan: null });
      expect(await runManually(again)).toMatchObject({
        status: 'completed',
        plan: { appliedAt: null, summary: { profiles: { users: { new: 1, changed: 1 } } } },
      });
      expect(await apply(environmentId, jobId)).toMatchObject({
        status: 'completed',
        tally: { inserted: 1 },
      });
    });
  },
);

// proves: plan-once
test('a change by a transaction that began before the plan counts as drift when it commits', async () => {
  const environmentId = await newEnvironment(t.system);
  await load(environmentId, stored);
  const client = await t.system.pool.connect();
  try {
    await client.query('begin');
    await client.query(
      `update sluice.users set metadata = '{"a": 9}', updated_at = now() where environment_id = $1 and user_id = 'same'`,
      [environmentId],
    );
    const { jobId } = await load(environmentId, file, { plan: true });
    await client.query('commit');
    expect(await apply(environmentId, jobId)).toMatchObject({ failure: { code: 'plan_drifted' } });
  } finally {
    client.release();
  }
});

const remove = (environmentId: number, id: string) =>
  t.system.pool.query('delete from sluice.users where environment_id = $1 and user_id = $2', [
    environmentId,
    id,
  ]);

// proves: plan-once
test.each([
  ['would stay as it is has been removed', 'same', ''],
  ['would change has been removed and made as it was', 'other', lines(user('other', { a: 1 }))],
])('a plan is refused if a profile that %s', async (_, removedId, between) => {
  const environmentId = await newEnvironment(t.system);
  await load(environmentId, stored);
  const { jobId } = await load(environmentId, file, { plan: true });
  await remove(environmentId, removedId);
  if (between !== '') await load(environmentId, between);
  const before = await readVersions(t.system, environmentId);
  expect(await apply(environmentId, jobId)).toMatchObject({ failure: { code: 'plan_drifted' } });
  expect(await readVersions(t.system, environmentId)).toEqual(before);
});

// proves: plan-once
test('a plan without a log of changes is refused, too, if a profile that would stay as it is has been removed', async () => {
  const drifting = await newEnvironment(t.system);
  const steady = await newEnvironment(t.system);
  const switchLog = (days: number) =>
    connectTo(t.databaseUrl, (client) => switchChangeLog(client, days, t.system.log));
  await switchLog(0);
  onTestFinished(() => switchLog(14));
  const planned = async (environmentId: number) => {
    await load(environmentId, stored);
    return load(environmentId, file, { plan: true });
  };
  const { jobId: drifted } = await planned(drifting);
  const { jobId: applied } = await planned(steady);
  await remove(drifting, 'same');
  expect(await apply(drifting, drifted)).toMatchObject({ failure: { code: 'plan_drifted' } });
  expect(await apply(steady, applied)).toMatchObject({ status: 'completed' });
});

test('a company that a user of the plan names counts as drift if it exists by now', async () => {
  const environmentId = await newEnvironment(t.system);
  const { jobId } = await load(environmentId, file, { plan: true });
  const company = { environmentId, key: 'firm', companyId: null, properties: '{}', removes: false };
  await writeCompanies(t.system.pool, [company]);
  expect(await apply(environmentId, jobId)).toMatchObject({ failure: { code: 'plan_drifted' } });
});

test('a plan that was cancelled before it was applied can be applied, but not without its file or after a deletion', async () => {
  const quiet = withoutQueue(t.system);
  const environmentId = await newEnvironment(t.system);
  const { jobId } = await load(environmentId, file, { plan: true });
  await applyPlan(quiet, environmentId, jobId, 'refuse');
  await cancelLoad(quiet, environmentId, jobId);
  expect(await apply(environmentId, jobId)).toMatchObject({ status: 'completed', tally: { inserted: 4 } });
  const expired = await load(environmentId, file, { plan: true });
  const { load_id } = await t.system.db
    .selectFrom('loads')
    .select('load_id')
    .where('job_id', '=', expired.jobId)
    .executeTakeFirstOrThrow();
  await forgetFiles(t.system.db, [load_id]);
  const expiredProblem = { problems: [{ code: 'job_expired' }] };
  await expect(applyPlan(quiet, environmentId, expired.jobId, 'refuse')).rejects.toMatchObject(
    expiredProblem,
  );
  const later = await load(environmentId, lines(user('u', { a: 1 })), { plan: true });
  expect(await readPlannedRows(t.system, later.jobId)).toHaveLength(1);
  await acceptDeletion(quiet, environmentId, 'users', ['other']);
  await expect(applyPlan(quiet, environmentId, later.jobId, 'proceed')).rejects.toMatchObject(expiredProblem);
});

test('a load that is not a plan, and a running plan, cannot be applied', async () => {
  const environmentId = await newEnvironment(t.system);
  const loaded = await load(environmentId, file);
  const running = await startManually(t.system, environmentId, file, { plan: true });
  for (const { jobId } of [loaded, running]) {
    await expect(applyPlan(t.system, environmentId, jobId, 'refuse')).rejects.toMatchObject({
      problems: [{ code: 'job_not_appliable' }],
    });
  }
});

describe.each([{ chunkBytes: 1 }, { chunkBytes: 10_000 }])(
  'an exceeded guard, in chunks of $chunkBytes bytes',
  (options) => {
    const bad = '{"user_id":""}\n';
    const removing = lines(user('same', { a: null }), user('other', { a: 2 }), user('out', { a: 3 }));

    // proves: plan-once
    test.each([
      [{ maxChanged: { count: 2 } }, '3 profiles would be changed or removed and max_changed allows 2'],
      [{ maxChanged: { percent: 50 } }, '3 profiles would be changed or removed and max_changed allows 2'],
      [{ maxRemovedValues: { count: 0 } }, '1 value would be removed and max_removed_values allows 0'],
      [{ maxErrors: { count: 1 } }, 'Stopped: 2 refused, 1 allowed by max_errors; nothing written'],
      [{ maxErrors: { percent: 39.9 } }, 'Stopped: 2 refused, 1 allowed by max_errors; nothing written'],
    ])(
      'an exceeded guard of %o fails the load without any effect, and a retry accepts it',
      async (guard, message) => {
        const environmentId = await newEnvironment(t.system);
        await load(environmentId, stored);
        const before = await readVersions(t.system, environmentId);
        const started = await startManually(t.system, environmentId, removing + bad + bad, {
          ...options,
          ...guard,
        });
        const failed = await runManually(started);
        const code = 'maxErrors' in guard ? 'too_many_rejects' : 'guard_exceeded';
        expect(failed).toMatchObject({
          status: 'failed',
          dryRun: false,
          failure: { code, message: `${message} (0 rows had been applied)` },
        });
        expect(await readVersions(t.system, environmentId)).toEqual(before);
        expect(await readRejects(t.system, failed.jobId)).toHaveLength(2);
        const quiet = withoutQueue(t.system);
        await retryLoad(quiet, environmentId, failed.jobId);
        const ended = await runManually(started);
        expect(ended).toMatchObject({ status: 'completed', tally: { read: 5, updated: 3, rejected: 2 } });
        expect(await readRejects(t.system, failed.jobId)).toHaveLength(2);
      },
    );

    test('a guard that is not exceeded lets the load continue by itself', async () => {
      const environmentId = await newEnvironment(t.system);
      await load(environmentId, stored);
      const guards = { maxChanged: { count: 3 }, maxRemovedValues: { count: 1 }, maxErrors: { count: 1 } };
      const ended = await runManually(
        await startManually(t.system, environmentId, removing + bad, { ...options, ...guards }),
      );
      expect(ended).toMatchObject({
        status: 'completed',
        tally: { read: 4, inserted: 0, updated: 3, unchanged: 0, superseded: 0, rejected: 1 },
        plan: { summary: { values: { change: 2, go: 1 } } },
      });
      const errorsOnly = await runManually(
        await startManually(t.system, environmentId, removing + bad, { ...options, maxErrors: { count: 1 } }),
      );
      expect(errorsOnly).toMatchObject({ status: 'completed', tally: { unchanged: 3, rejected: 1 } });
    });

    test('an exceeded guard fails a plan, which shows its changes', async () => {
      const environmentId = await newEnvironment(t.system);
      await load(environmentId, stored);
      const guarded = await load(environmentId, removing, {
        ...options,
        plan: true,
        maxChanged: { count: 0 },
      });
      expect(guarded).toMatchObject({
        failure: { code: 'guard_exceeded' },
        plan: { summary: { profiles: { users: { changed: 3 } } } },
      });
    });
  },
);

test('a load of one chunk applies max_errors also to records that only the database refuses', async () => {
  const environmentId = await newEnvironment(t.system);
  // jsonb cannot store a number with so many decimal places.
  const refused = `{"user_id":"n","a":1e-20000}\n`;
  const content = lines(user('x', { a: 1 })) + refused;
  const loaded = await load(environmentId, content, { maxErrors: { count: 0 } });
  expect(loaded.status).toBe('failed');
  expect((await readProfiles(t.system, environmentId)).users).toEqual({});
});
