import { sql } from 'kysely';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { chunkJob } from '../../jobs/load.ts';
import { LEASE_MS } from '../../src/base/limits.ts';
import type { TaskClaim } from '../../src/domain/task.ts';
import type { Database } from '../../src/postgres/database.ts';
import { startReconciler } from '../../src/tasks/reconcile.ts';
import { endTask, LostClaim, releaseTask, renewTask, rescueTasks } from '../../src/tasks/store.ts';
import { takeUnnotifiedTasks } from '../../src/tasks/unnotified-store.ts';
import { endLostSessions } from '../../src/tasks/worker-store.ts';
import { type ManualLoad, startManually, withoutQueue } from '../support/files/load-file.ts';
import { systemOfFile } from '../support/servers/system.ts';
import { claimTaskOf } from '../support/servers/tasks.ts';
import { waitFor } from '../support/wait-for.ts';

/**
 * If the clock of the database is set back by an hour, a lease ends an hour later than it should.
 * Instead of setting the clock, the tests move the end of the lease.
 */

const t = await systemOfFile();
let db: Database;
let environmentId: number;
beforeAll(async () => {
  ({ db } = t.system);
  ({ environmentId } = t.environment);
});
beforeEach(async () => {
  // The lane must be empty before each test.
  await db.deleteFrom('deletions').execute();
  await db.deleteFrom('tasks').execute();
  await sql`update loads set status = 'cancelled', ended_at = now() where status in ('queued', 'processing')`.execute(
    db,
  );
});

const start = (content = 'user_id,plan\nu1,free\n'): Promise<ManualLoad> =>
  startManually(t.system, environmentId, content, { chunkBytes: 1 });

/**
 * Ways to claim a task. Each function claims a task, and returns a function that reports whether
 * another worker could claim the same task.
 */
const claims = {
  async rescued() {
    const { loadId } = await start();
    expect(await claimTaskOf(db, 'chunk', loadId)).not.toBeNull();
    return async () => {
      await endLostSessions(db, ['chunk']);
      return (await rescueTasks(db, ['chunk'])).some(({ subjectId }) => subjectId === loadId);
    };
  },
  async 'claimed by another'() {
    const { loadId } = await start();
    expect(await claimTaskOf(db, 'chunk', loadId)).not.toBeNull();
    return async () => (await claimTaskOf(db, 'chunk', loadId)) !== null;
  },
};

// proves: clock-back
test.each(Object.entries(claims))(
  'a task whose worker was killed is %s at once though the clock of the database went back an hour',
  async (_, claim) => {
    const isAvailable = await claim();
    const moveLeases = (ms: number) =>
      sql`update tasks set lease_until = now() + ${ms} * interval '1 millisecond' where lease_until is not null`.execute(
        db,
      );
    expect(await isAvailable()).toBe(false);
    await moveLeases(1.5 * LEASE_MS);
    expect(await isAvailable()).toBe(false);
    await moveLeases(LEASE_MS + 60 * 60 * 1000);
    expect(await isAvailable()).toBe(true);
  },
);

test('a notice is repeated and a wait is over if they are from before the clock went back', async () => {
  const { loadId } = await start();
  const due = async () => (await takeUnnotifiedTasks(db, ['chunk'], 5_000)).length;
  const hour = sql`now() + interval '1 hour'`;
  expect(await due()).toBe(0);
  await sql`update tasks set notified_at = ${hour} where subject_id = ${loadId}`.execute(db);
  expect(await due()).toBe(1);
  await sql`update tasks set notified_at = null, not_before = ${hour} where subject_id = ${loadId}`.execute(
    db,
  );
  expect(await due()).toBe(0);
  await sql`update tasks set waiting_since = ${hour} where subject_id = ${loadId}`.execute(db);
  expect(await due()).toBe(1);
});

test('an attempt that lost its task cannot renew, release or end it while another attempt has it', async () => {
  const { loadId } = await start();
  const late = await claimTaskOf(db, 'chunk', loadId);
  await db.updateTable('tasks').set({ lease_until: sql`now() - interval '1 minute'` }).execute();
  const owner = await claimTaskOf(db, 'chunk', loadId);
  if (late === null || owner === null) throw new Error('the task could not be claimed twice');
  expect(await renewTask(db, late)).toBe(false);
  expect(await releaseTask(db, late)).toBeNull();
  await expect(endTask(db, late)).rejects.toThrow(LostClaim);
  await endTask(db, owner);
});

// proves: stale-worker
test.each([
  ['released its task', async (claim: TaskClaim) => void (await releaseTask(db, claim))],
  [
    'lost its task to the reconciler',
    async () => {
      await db.updateTable('tasks').set({ lease_until: sql`now() - interval '1 minute'` }).execute();
      await endLostSessions(db, ['chunk']);
      await rescueTasks(db, ['chunk']);
    },
  ],
])('an attempt that %s cannot renew, release or end it before another attempt has it', async (_, lose) => {
  const { loadId } = await start();
  const late = await claimTaskOf(db, 'chunk', loadId);
  if (late === null) throw new Error('the task could not be claimed');
  await lose(late);
  expect(await renewTask(db, late)).toBe(false);
  expect(await releaseTask(db, late)).toBeNull();
  await expect(endTask(db, late)).rejects.toThrow(LostClaim);
  expect(await claimTaskOf(db, 'chunk', loadId)).not.toBeNull();
});

describe('the reconciler', () => {
  /** Runs one poll of the reconciler. Returns how many times the poll reported active tasks. */
  async function reportsOfOnePoll(): Promise<number> {
    let reports = 0;
    let reconciled = 0;
    const kind = { ...chunkJob, reconcile: async () => void reconciled++ };
    const reconciler = startReconciler(withoutQueue(t.system), [kind], () => void reports++);
    await waitFor('the first poll', async () => reconciled > 0);
    await reconciler.stop();
    return reports;
  }

  test('a poll without tasks reconciles and reports none', async () => {
    expect(await reportsOfOnePoll()).toBe(0);
  });

  test('a poll reports a task that is due or that a worker has', async () => {
    const { loadId } = await start();
    expect(await reportsOfOnePoll()).toBeGreaterThan(0);
    expect(await claimTaskOf(db, 'chunk', loadId)).not.toBeNull();
    expect(await reportsOfOnePoll()).toBeGreaterThan(0);
  });

  test('a poll does not report a task that waits for a later time', async () => {
    await start();
    await sql`update tasks set not_before = now() + interval '1 hour'`.execute(db);
    expect(await reportsOfOnePoll()).toBe(0);
  });
});
