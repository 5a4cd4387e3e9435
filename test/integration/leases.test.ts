import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { LEASE_MS } from '../../src/domain/limits.ts';
import type { TaskClaim, TaskKindName } from '../../src/domain/task.ts';
import type { Database } from '../../src/postgres/database.ts';
import { queueDeliveries } from '../../src/postgres/stores/deliveries.ts';
import { queueRuns } from '../../src/postgres/stores/schedule-runs.ts';
import {
  claimTask,
  endTask,
  releaseTask,
  renewTask,
  rescueTasks,
  takeUnnotifiedTasks,
} from '../../src/postgres/stores/tasks.ts';
import { endLostSessions } from '../../src/postgres/stores/workers.ts';
import { acceptDeletion } from '../support/deletions.ts';
import { acceptExport } from '../support/exports.ts';
import { type ManualLoad, startManually } from '../support/load-file.ts';
import { openTestSystem, type TestSystem } from '../support/system.ts';

/*
 * The clock of the database goes back an hour: whatever was claimed just before has a lease that ends in an hour. Here it
 * is the leases that are moved, which to the database is the same.
 */

let t: TestSystem;
let db: Database;
let environmentId: number;
beforeAll(async () => {
  t = await openTestSystem();
  ({ db } = t.system);
  ({ environmentId } = t.environment);
});
afterAll(() => t?.close());
beforeEach(async () => {
  // Nothing stands before it in the lane.
  await db.deleteFrom('deletions').execute();
  await db.deleteFrom('tasks').execute();
  await sql`update loads set status = 'cancelled', ended_at = now() where status in ('queued', 'processing')`.execute(
    db,
  );
});

const start = (content = 'user_id,plan\nu1,free\n'): Promise<ManualLoad> =>
  startManually(t.system, environmentId, content, { chunkBytes: 1 });

interface Leased {
  readonly kind: string;
  readonly table: string;
  readonly column: string;
  readonly lengthMs: number;
  /** Has somebody claim one, and says how somebody else finds out whether it may be had. */
  claim(): Promise<() => Promise<boolean>>;
}

const deliveryOf = (channel: 'webhook' | 'email') => async () => {
  const { rows } = await sql<{ id: number }>`
    with subscription as (
      insert into notification_subscriptions
        (subscription_id, environment_id, channel, target, outcomes, job_kinds, secret)
      select gen_random_uuid(), ${environmentId}, 'webhook', 'http://x', '{failed}', '{load}', 'whsec_' || repeat('A', 43) || '='
      returning subscription_id
    ), event as (
      insert into notification_events (event_id, environment_id, type, body)
      values (gen_random_uuid(), ${environmentId}, 'ping', '{}')
      returning event_id
    )
    insert into notification_deliveries (public_id, event_id, subscription_id, channel, target)
    select event_id, event_id, subscription_id, ${channel}, 'x'
    from event, subscription
    returning delivery_id as id`.execute(db);
  const id = rows[0]?.id ?? 0;
  await queueDeliveries(db, [id]);
  expect(await claimTaskOf('delivery', id)).not.toBeNull();
  return async () => (await claimTaskOf('delivery', id)) !== null;
};

const kinds: readonly Leased[] = [
  {
    kind: 'a task',
    table: 'tasks',
    column: 'lease_until',
    lengthMs: LEASE_MS,
    async claim() {
      const { loadId } = await start();
      expect(await claimTaskOf('chunk', loadId)).not.toBeNull();
      return async () => {
        await endLostSessions(db, ['chunk']);
        return (await rescueTasks(db, ['chunk'])).some(({ subjectId }) => subjectId === loadId);
      };
    },
  },
  {
    kind: 'a chunk that is given to another',
    table: 'tasks',
    column: 'lease_until',
    lengthMs: LEASE_MS,
    async claim() {
      const { loadId } = await start();
      expect(await claimTaskOf('chunk', loadId)).not.toBeNull();
      return async () => (await claimTaskOf('chunk', loadId)) !== null;
    },
  },
  {
    kind: 'the finish of a load',
    table: 'tasks',
    column: 'lease_until',
    lengthMs: LEASE_MS,
    async claim() {
      const load = await start('user_id,plan\nu1,free\nu2,free\n');
      for (let no = 0; no < load.chunkCount; no++) await load.chunk(no);
      expect(await claimTaskOf('finish', load.loadId)).not.toBeNull();
      return async () => (await claimTaskOf('finish', load.loadId)) !== null;
    },
  },
  {
    kind: 'an export',
    table: 'tasks',
    column: 'lease_until',
    lengthMs: LEASE_MS,
    async claim() {
      const { exportId } = await acceptExport(t.system, environmentId);
      expect(await claimTaskOf('export', exportId)).not.toBeNull();
      return async () => {
        await endLostSessions(db, ['export']);
        return (await rescueTasks(db, ['export'])).some(({ subjectId }) => subjectId === exportId);
      };
    },
  },
  {
    kind: 'a deletion',
    table: 'tasks',
    column: 'lease_until',
    lengthMs: LEASE_MS,
    async claim() {
      const work = await acceptDeletion(t.system, environmentId, 'users', ['u1']);
      const { deletionId } = await work.look();
      expect(await claimTaskOf('deletion', deletionId)).not.toBeNull();
      return async () =>
        (await rescueTasks(db, ['deletion'])).some(({ subjectId }) => subjectId === deletionId);
    },
  },
  {
    kind: 'a deletion that is given to another',
    table: 'tasks',
    column: 'lease_until',
    lengthMs: LEASE_MS,
    async claim() {
      const work = await acceptDeletion(t.system, environmentId, 'users', ['u1']);
      const { deletionId } = await work.look();
      expect(await claimTaskOf('deletion', deletionId)).not.toBeNull();
      return async () => (await claimTaskOf('deletion', deletionId)) !== null;
    },
  },
  {
    kind: 'the run of a schedule',
    async claim() {
      await sql`
        insert into schedules (environment_id, schedule_name, considered_until)
        values (${environmentId}, 's', now())`.execute(db);
      await sql`
        insert into schedule_runs (environment_id, schedule_name, due_at, cause, definition)
        values (${environmentId}, 's', now(), 'due', '{}')`.execute(db);
      const [due] = await queueRuns(db);
      expect(await claimTask(db, due?.taskId ?? 0, 10)).not.toBeNull();
      return async () => (await rescueTasks(db, ['run'])).some(({ taskId }) => taskId === due?.taskId);
    },
    table: 'tasks',
    column: 'lease_until',
    lengthMs: LEASE_MS,
  },
  {
    kind: 'a webhook',
    table: 'tasks',
    column: 'lease_until',
    lengthMs: LEASE_MS,
    claim: deliveryOf('webhook'),
  },
  {
    kind: 'a mail',
    table: 'tasks',
    column: 'lease_until',
    lengthMs: LEASE_MS,
    claim: deliveryOf('email'),
  },
];

// proves: clock-back
test.each(kinds)(
  '$kind whose worker was killed is had again at once though the clock of the database went back an hour',
  async ({ table, column, lengthMs, claim }) => {
    const mayBeHad = await claim();
    const moveLeases = (ms: number) =>
      sql`update ${sql.table(table)}
        set ${sql.ref(column)} = now() + ${ms} * interval '1 millisecond'
        where ${sql.ref(column)} is not null`.execute(db);
    expect(await mayBeHad()).toBe(false);
    await moveLeases(1.5 * lengthMs);
    expect(await mayBeHad()).toBe(false);
    await moveLeases(lengthMs + 60 * 60 * 1000);
    expect(await mayBeHad()).toBe(true);
  },
);

test('what the queue was notified of by a clock that went back is told again, and what it is to wait for is over', async () => {
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

test('an attempt that lost its task cannot renew it, give it back or end it while another attempt has it', async () => {
  const { loadId } = await start();
  const late = await claimTaskOf('chunk', loadId);
  await db.updateTable('tasks').set({ lease_until: sql`now() - interval '1 minute'` }).execute();
  const owner = await claimTaskOf('chunk', loadId);
  if (late === null || owner === null) throw new Error('the task could not be claimed twice');
  expect(await renewTask(db, late)).toBe(false);
  expect(await releaseTask(db, late)).toBeNull();
  expect(await endTask(db, late)).toBe(false);
  expect(await endTask(db, owner)).toBe(true);
});

/** Null: it is another's. */
async function claimTaskOf(kind: TaskKindName, subjectId: number): Promise<TaskClaim | null> {
  const { task_id } = await db
    .selectFrom('tasks')
    .select('task_id')
    .where('kind', '=', kind)
    .where('subject_id', '=', subjectId)
    .executeTakeFirstOrThrow();
  return claimTask(db, task_id, 10);
}
