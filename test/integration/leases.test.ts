import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { EMAIL_LEASE_MS, LEASE_MS, WEBHOOK_LEASE_MS } from '../../src/domain/limits.ts';
import type { Database } from '../../src/postgres/database.ts';
import { claimChunk, rescueChunks, takeDueChunks } from '../../src/postgres/ledger/chunks.ts';
import { claimDeletion, rescueDeletions } from '../../src/postgres/ledger/deletions.ts';
import { rescueExports } from '../../src/postgres/ledger/due-exports.ts';
import { claimExport } from '../../src/postgres/ledger/export-claims.ts';
import { claimFinish } from '../../src/postgres/ledger/finish.ts';
import { endSilentExportSessions, endSilentSessions } from '../../src/postgres/ledger/sessions.ts';
import { claimDelivery, findNextDeliveries } from '../../src/postgres/stores/deliveries.ts';
import { claimRun, rescueRuns } from '../../src/postgres/stores/schedule-runs.ts';
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
  await sql`update loads set status = 'cancelled', ended_at = now(), finish_lease_until = null
    where status in ('queued', 'processing')`.execute(db);
});

const start = (): Promise<ManualLoad> => startManually(t.system, environmentId, 'user_id,plan\nu1,free\n');

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
      insert into notification_subscriptions (environment_id, channel, target, outcomes, job_kinds, secret)
      select ${environmentId}, 'webhook', 'http://x', '{failed}', '{load}', 'whsec_' || repeat('A', 43) || '='
      returning subscription_id
    ), event as (
      insert into notification_events (event_id, environment_id, type, body)
      values (gen_random_uuid(), ${environmentId}, 'ping', '{}')
      returning event_id
    )
    insert into notification_deliveries (event_id, subscription_id, channel, target, attempts_left)
    select event_id, subscription_id, ${channel}, 'x', 5
    from event, subscription
    returning delivery_id as id`.execute(db);
  const id = rows[0]?.id ?? 0;
  expect(await claimDelivery(db, id, 5)).not.toBeNull();
  return async () => {
    const due = (await findNextDeliveries(db, [], 100, [])).some(({ deliveryId }) => deliveryId === id);
    expect((await claimDelivery(db, id, 5)) !== null).toBe(due);
    return due;
  };
};

const kinds: readonly Leased[] = [
  {
    kind: 'a chunk',
    table: 'load_chunks',
    column: 'lease_until',
    lengthMs: LEASE_MS,
    async claim() {
      const { loadId } = await start();
      expect(await claimChunk(db, loadId, 0)).not.toBeNull();
      return async () => {
        await endSilentSessions(db);
        return (await rescueChunks(db)).some((chunk) => chunk.loadId === loadId);
      };
    },
  },
  {
    kind: 'a chunk that the queue gives to another',
    table: 'load_chunks',
    column: 'lease_until',
    lengthMs: LEASE_MS,
    async claim() {
      const { loadId } = await start();
      expect(await claimChunk(db, loadId, 0)).not.toBeNull();
      return async () => (await claimChunk(db, loadId, 0)) !== null;
    },
  },
  {
    kind: 'the finish of a load',
    table: 'loads',
    column: 'finish_lease_until',
    lengthMs: LEASE_MS,
    async claim() {
      const load = await start();
      await load.chunk(0);
      expect(await claimFinish(db, load.loadId)).not.toBeNull();
      return async () => (await claimFinish(db, load.loadId)) !== null;
    },
  },
  {
    kind: 'an export',
    table: 'exports',
    column: 'lease_until',
    lengthMs: LEASE_MS,
    async claim() {
      const { exportId } = await acceptExport(t.system, environmentId);
      expect(await claimExport(db, exportId)).not.toBeNull();
      return async () => {
        await endSilentExportSessions(db);
        return (await rescueExports(db)).some((lost) => lost.exportId === exportId);
      };
    },
  },
  {
    kind: 'a deletion',
    table: 'deletions',
    column: 'lease_until',
    lengthMs: LEASE_MS,
    async claim() {
      const work = await acceptDeletion(t.system, environmentId, 'users', ['u1']);
      const { deletionId } = await work.look();
      expect(await claimDeletion(db, deletionId)).not.toBeNull();
      return async () => (await rescueDeletions(db)).some((lost) => lost.deletionId === deletionId);
    },
  },
  {
    kind: 'a deletion that the queue gives to another',
    table: 'deletions',
    column: 'lease_until',
    lengthMs: LEASE_MS,
    async claim() {
      const work = await acceptDeletion(t.system, environmentId, 'users', ['u1']);
      const { deletionId } = await work.look();
      expect(await claimDeletion(db, deletionId)).not.toBeNull();
      return async () => (await claimDeletion(db, deletionId)) !== null;
    },
  },
  {
    kind: 'the run of a schedule',
    table: 'schedule_runs',
    column: 'lease_until',
    lengthMs: LEASE_MS,
    async claim() {
      await sql`
        insert into schedules (environment_id, schedule_name, considered_until)
        values (${environmentId}, 's', now())`.execute(db);
      await sql`
        insert into schedule_runs (environment_id, schedule_name, due_at, cause, definition)
        values (${environmentId}, 's', now(), 'due', '{}')`.execute(db);
      const claim = await claimRun(db);
      return async () => (await rescueRuns(db)).some(({ runId }) => runId === claim?.runId);
    },
  },
  {
    kind: 'a webhook',
    table: 'notification_deliveries',
    column: 'lease_until',
    lengthMs: WEBHOOK_LEASE_MS,
    claim: deliveryOf('webhook'),
  },
  {
    kind: 'a mail',
    table: 'notification_deliveries',
    column: 'lease_until',
    lengthMs: EMAIL_LEASE_MS,
    claim: deliveryOf('email'),
  },
];

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

test('what the queue was told of by a clock that went back is told again', async () => {
  const { loadId } = await start();
  const due = async () => (await takeDueChunks(db, loadId, 5_000, 10)).length;
  await sql`update load_chunks set dispatched_at = now() where load_id = ${loadId}`.execute(db);
  expect(await due()).toBe(0);
  await sql`update load_chunks set dispatched_at = now() + interval '1 hour' where load_id = ${loadId}`.execute(
    db,
  );
  expect(await due()).toBe(1);
});
