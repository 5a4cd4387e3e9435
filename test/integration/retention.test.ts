import fc from 'fast-check';
import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createEnvironment } from '../../src/access/environment-store.ts';
import { openRecord } from '../../src/ingest/fields.ts';
import { readEvent } from '../../src/ingest/read-record.ts';
import { prune } from '../../src/jobs/prune.ts';
import { inTransaction } from '../../src/postgres/database.ts';
import { findOldMonths, readEventRetention } from '../../src/postgres/retention.ts';
import { inEventTables, removeDoomed, retireMonth } from '../../src/postgres/retirements.ts';
import { runManually, startManually } from '../support/files/load-file.ts';
import {
  endOfMonth,
  eventTables,
  heldEvents,
  insertEvents,
  instantBetween,
  monthName,
  monthsAgo,
  type StoredEvent,
} from '../support/oracles/retention.ts';
import { connectTo } from '../support/servers/connect.ts';
import { apply } from '../support/servers/definitions.ts';
import { openTestSystem, type TestSystem } from '../support/servers/system.ts';
import { waitFor } from '../support/wait-for.ts';

const dayMs = 24 * 60 * 60 * 1000;
const names = ['page_view', 'signup', `o'dd "näme" *`];

let t: TestSystem;
beforeEach(async () => {
  t = await openTestSystem({ settings: { EVENT_RETENTION_DAYS: '200' } });
});
afterEach(() => t.close());

function event(environment: number, at: string, more: Partial<StoredEvent> = {}): StoredEvent {
  const id = more.id ?? `e${at}`;
  return {
    ...{ environment, id, at, name: 'page_view', user: 'u', company: null, metadata: {}, named: true },
    ...more,
  };
}

const eventOf = (record: object, environmentId: number) =>
  readEvent(openRecord(Buffer.from(JSON.stringify(record))), environmentId);

/** Detaches a month of events, like a pruning process that dies immediately afterwards. */
async function retireByHand(start: number): Promise<void> {
  const { db } = t.system;
  const month = sql.id('sluice', `events_${monthName(start)}`);
  await sql`alter table events detach partition ${month}`.execute(db);
  await sql`alter table ${month} rename to retired_events_4711`.execute(db);
  await sql`
    insert into event_retirements (month, table_name, archives, is_whole, state)
    values (${new Date(start).toISOString()}::date, 'retired_events_4711', false, true, 'retired')`.execute(
    db,
  );
}

describe('retention of events', () => {
  // proves: retention
  test('a pruning keeps exactly the events within the retention of their environment and name, and removes the others with ids and tables', async () => {
    const environments = [t.environment.environmentId];
    for (const name of ['a', 'b'])
      environments.push((await createEnvironment(t.system.db, name)).environmentId);
    const days = fc.constantFrom(0, 1, 31, 100, 400);
    const rule = fc.uniqueArray(fc.record({ key: fc.constantFrom('*', ...names), days }), {
      selector: ({ key }) => key,
    });
    const [first] = fc.sample(fc.tuple(rule, rule, rule), { numRuns: 1 });
    const rules = new Map(environments.map((environment, at) => [environment, first?.[at] ?? []]));
    const months = [0, 1, 2, 4, 7, 12, 14];
    const place = fc.record({
      environment: fc.constantFrom(...environments),
      name: fc.constantFrom(...names),
      month: fc.constantFrom(...months),
      within: fc.double({ min: 0, max: 0.999999, noNaN: true }),
      named: fc.boolean(),
    });
    const places = fc.sample(place, { numRuns: 600 });
    const events = places.map(({ month, within, ...more }, at) =>
      event(more.environment, instantBetween(monthsAgo(month), monthsAgo(month - 1), within), {
        ...more,
        id: `e${at}`,
      }),
    );
    await insertEvents(t, events);
    for (const [environmentId, items] of rules) {
      const tenant = { environment: { environmentId }, key: '' } as TestSystem;
      await apply(t, tenant, { event_retention: items });
    }

    const now = Date.now();
    const daysOf = ({ environment, name }: StoredEvent): number => {
      const items = rules.get(environment) ?? [];
      const match = items.find(({ key }) => key === name) ?? items.find(({ key }) => key === '*');
      return match?.days ?? 200;
    };
    const isKept = (each: StoredEvent): boolean =>
      daysOf(each) === 0 || endOfMonth(Date.parse(each.at)) > now - daysOf(each) * dayMs;
    const keyOf = ({ environment, id }: StoredEvent): string => `${environment}/${id}`;
    const keptEvents = events.filter(isKept);
    const pruned = await prune(t.system);

    expect(await heldEvents(t)).toEqual({
      events: keptEvents.map(keyOf).sort(),
      ids: keptEvents
        .filter(({ named }) => named)
        .map(keyOf)
        .sort(),
    });
    expect(pruned.events).toBe(events.length - keptEvents.length);
    // Pruning drops a month if no event of that month is kept. Months that never had events, such
    // as those prepared for new events, are not compared.
    const holding = new Set(keptEvents.map(({ at }) => `events_${at.slice(0, 7).replace('-', '_')}`));
    const filled = new Set(events.map(({ at }) => `events_${at.slice(0, 7).replace('-', '_')}`));
    const tables = await eventTables(t);
    expect(tables.filter((name) => filled.has(name))).toEqual(
      [...filled].filter((name) => holding.has(name)).sort(),
    );
    expect(tables.filter((name) => name.startsWith('retired'))).toEqual([]);
    expect(await prune(t.system)).toMatchObject({ events: 0, months: 0 });
  });

  // proves: retention
  test('a file whose events outlived their retention adds them again when it is loaded again', async () => {
    const { environmentId } = t.environment;
    const month = monthsAgo(12);
    const day = instantBetween(monthsAgo(1), monthsAgo(0), 0.5);
    const file = `event_type,user_id,inserted_at\npage_view,u,${instantBetween(month, monthsAgo(11), 0.5)}\npage_view,u,${day}\n`;
    const load = async () => {
      const manual = await startManually(t.system, environmentId, file);
      // If the month has no partition, the first attempt of the chunk fails and the partition is
      // then created. The second attempt succeeds.
      await manual.chunk(0);
      return (await runManually(manual)).tally;
    };
    expect(await load()).toMatchObject({ inserted: 2 });
    expect((await prune(t.system)).events).toBe(1);
    expect(await load()).toMatchObject({ inserted: 1, unchanged: 1 });
    expect(await load()).toMatchObject({ inserted: 0, unchanged: 2 });
  });

  // proves: retention
  test('a month that got an event that stays since it was examined is not dropped', async () => {
    await apply(t, t, { event_retention: [{ key: 'signup', days: 0 }] });
    const at = instantBetween(monthsAgo(12), monthsAgo(11), 0.5);
    await insertEvents(t, [event(t.environment.environmentId, at, { name: 'signup' })]);
    const { db, pool } = t.system;
    const [month] = await findOldMonths(db, 200);
    if (month === undefined) throw new Error('the month is not found');
    expect(await retireMonth(pool, month, { defaultDays: 200, archives: false })).toBeNull();
    expect((await heldEvents(t)).events).toHaveLength(1);
  });

  test('records are accepted while months are dropped, also records of these months', async () => {
    const { environmentId } = t.environment;
    const old = [10, 11, 12, 13, 14].map((count) =>
      instantBetween(monthsAgo(count), monthsAgo(count - 1), 0.5),
    );
    await insertEvents(
      t,
      old.flatMap((at, month) =>
        Array.from({ length: 1_000 }, (_, n) => event(environmentId, at, { id: `${month} ${n}` })),
      ),
    );
    let sent = 0;
    let slowest = 0;
    let isPruning = true;
    const send = async (timestamp?: string): Promise<void> => {
      while (isPruning) {
        const began = performance.now();
        const body = { user_id: 'u', event_name: 'kept', timestamp };
        await t.system.ingest.track(eventOf(body, environmentId), null);
        slowest = Math.max(slowest, performance.now() - began);
        sent++;
      }
    };
    const senders = [send(), send(), send(old[0])];
    const { months } = await prune(t.system);
    isPruning = false;
    await Promise.all(senders);
    expect(months).toBeGreaterThanOrEqual(4);
    expect(sent).toBeGreaterThan(10);
    // The limit is EVENTS_LOCK_MS plus a wide margin for a busy machine.
    expect(slowest).toBeLessThan(3_000);
    expect((await prune(t.system)).months).toBeLessThanOrEqual(1);
    const { rows } = await sql<{ count: number }>`
      select count(*) as count from events where inserted_at < now() - interval '8 months'`.execute(
      t.system.db,
    );
    expect(rows).toEqual([{ count: 0 }]);
  });

  test('a month with a long reader stays and is reported, records are accepted meanwhile, and the next pruning drops it', async () => {
    const { environmentId } = t.environment;
    await insertEvents(t, [event(environmentId, instantBetween(monthsAgo(12), monthsAgo(11), 0.5))]);
    const reader = await t.system.pool.connect();
    try {
      await reader.query('begin');
      await reader.query('select count(*) from events');
      const pruning = prune(t.system);
      const event = { user_id: 'u', event_name: 'now' };
      for (let n = 0; n < 20; n++) await t.system.ingest.track(eventOf(event, environmentId), null);
      expect(await pruning).toMatchObject({ events: 0, months: 0 });
    } finally {
      await reader.query('rollback');
      reader.release();
    }
    const readError = () =>
      connectTo(t.databaseUrl, async (client) => {
        const { error } = await readEventRetention(client);
        return error;
      });
    expect(await readError()).toContain('lock timeout');
    expect((await t.system.metrics.render()).text).toContain('sluice_event_pruning_failing 1');
    expect(await prune(t.system)).toMatchObject({ events: 1, months: 1 });
    expect(await readError()).toBe(null);
  });

  test('a pruning that died after it detached a month is completed by the next', async () => {
    const { environmentId } = t.environment;
    const at = instantBetween(monthsAgo(12), monthsAgo(11), 0.5);
    await insertEvents(t, [event(environmentId, at)]);
    await retireByHand(monthsAgo(12));
    expect(await prune(t.system)).toMatchObject({ events: 1, months: 1 });
    expect((await eventTables(t)).filter((name) => name.startsWith('retired'))).toEqual([]);
    expect(await heldEvents(t)).toEqual({ events: [], ids: [] });
  });

  test('a pruning and a deletion of events in a detached month do not wait for each other', async () => {
    const { environmentId } = t.environment;
    const at = instantBetween(monthsAgo(12), monthsAgo(11), 0.5);
    await insertEvents(t, [event(environmentId, at), event(environmentId, new Date().toISOString())]);
    await retireByHand(monthsAgo(12));
    let pruning: ReturnType<typeof prune> | null = null;
    const removed = await inTransaction(t.system.pool, ({ db }) =>
      inEventTables(db, 10, async (table) => {
        const { rows } = await sql`
          with doomed as (select user_id, inserted_at, event_id from ${table}),
          ${removeDoomed(table, environmentId)}
          select 1 from removed`.execute(db);
        if (pruning !== null) return rows.length;
        pruning = prune(t.system);
        await waitFor('the pruning to wait', async () => {
          const waiting = await sql`
            select 1 from pg_stat_activity
            where datname = current_database() and wait_event_type = 'Lock'`.execute(t.system.db);
          return waiting.rows.length > 0;
        });
        return rows.length;
      }),
    );
    expect(removed).toBe(2);
    expect(await pruning).toMatchObject({ months: 1 });
    expect(await heldEvents(t)).toEqual({ events: [], ids: [] });
  });
});
