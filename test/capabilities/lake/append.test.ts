import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createEnvironment } from '../../../src/access/environment-store.ts';
import { appendEvents } from '../../../src/capabilities/lake/append-events.ts';
import { figures } from '../../../src/capabilities/lake/figures.ts';
import {
  LAKE_APPENDS,
  LAKE_SETTLE_HOURS,
  listOpenMonths,
  readMonth,
  settleMonth,
} from '../../../src/capabilities/lake/month-store.ts';
import { failDeletion } from '../../../src/deletion/run-deletion.ts';
import { deleteEvents, releaseEvents } from '../../../src/export/deleted-profile-store.ts';
import type { FileRef, FileStore } from '../../../src/files/file-store.ts';
import { pruneEvents } from '../../../src/jobs/prune-events.ts';
import type { RetentionContext } from '../../../src/jobs/seam.ts';
import { monthsAgo } from '../../support/oracles/retention.ts';
import { apply } from '../../support/servers/definitions.ts';
import { acceptDeletion } from '../../support/servers/deletions.ts';
import { openTestSystem, type TestSystem } from '../../support/servers/system.ts';
import {
  addEvents,
  expectNamedFiles,
  expectSame,
  mortalSystem,
  readEverywhere,
  readLake,
} from './support/lake.ts';

let t: TestSystem;
let environmentId: number;
beforeEach(async () => {
  t = await openTestSystem({ settings: { EVENT_RETENTION_DAYS: '100', LAKE_EVERY: '1h' } });
  environmentId = t.environment.environmentId;
});
afterEach(() => t.close());

function missing(): never {
  throw new Error('the lake has no such month');
}

const everywhere = () => readEverywhere(t.system, environmentId);

interface Hot {
  readonly id: number;
  readonly month: string;
  readonly hot: boolean;
}

async function files(): Promise<readonly Hot[]> {
  const { rows } = await sql<Hot>`
    select file_id as id, month::text, is_hot as hot
    from lake_files
    where kind = 'data' and state = 'stored' and environment_id = ${environmentId}
    order by file_id`.execute(t.system.db);
  return rows;
}

const append = (context: RetentionContext = t.system) => appendEvents(context);
const monthOf = (ago: number): string => new Date(monthsAgo(ago)).toISOString().slice(0, 10);

async function age(hours: number): Promise<void> {
  await sql`update lake_months set written_at = written_at - ${hours} * interval '1 hour'`.execute(
    t.system.db,
  );
}

describe('an append', () => {
  // proves: lake-appends
  test('the lake has each event once, for any time of arrival and any month', async () => {
    const neighbour = (await createEnvironment(t.system.db, 'neighbour')).environmentId;
    await addEvents(t, [0, 1, 2], 40);
    await addEvents(t, [1], 5, { environment: neighbour });
    await append();
    const rows = await expectSame(t);
    expect(rows).toHaveLength(120);
    expect(await readLake(t.system, 'neighbour')).toHaveLength(5);
    const filesBefore = await files();
    await append();
    expect(await files()).toEqual(filesBefore);

    await addEvents(t, [0, 2], 7);
    const events = await everywhere();
    await append();
    expect(await everywhere()).toEqual(events);
    expect(await expectSame(t)).toHaveLength(134);
    // Existing files must stay. Each month with new events gets one more file.
    const filesAfter = await files();
    expect(filesAfter.slice(0, filesBefore.length)).toEqual(filesBefore);
    expect(filesAfter.slice(filesBefore.length).map(({ month }) => month)).toEqual([monthOf(2), monthOf(0)]);
  });

  // proves: lake-appends
  test('events of a transaction that ends after a later append are not missed', async () => {
    await addEvents(t, [0], 3);
    await append();
    const client = await t.system.pool.connect();
    try {
      await client.query('begin');
      await client.query(
        `insert into sluice.events (environment_id, event_id, event_name, user_id, source, inserted_at)
         values ($1, 'slow', 'seen', 'u1', 'backend-http', now())`,
        [environmentId],
      );
      await addEvents(t, [0], 3);
      await append();
      expect(await readLake(t.system, 'default')).toHaveLength(6);
      await client.query('commit');
    } finally {
      client.release();
    }
    await append();
    expect(await expectSame(t)).toHaveLength(7);
  });

  // proves: lake-appends
  test('a month is rewritten after many appends, at its end, or a day after removals', async () => {
    await addEvents(t, [0, 1], 10);
    await append();
    await addEvents(t, [0, 1], 2);
    await append();
    const filesOfMonth = async (ago: number) =>
      (await files()).filter(({ month }) => month === monthOf(ago)).length;
    expect([await filesOfMonth(0), await filesOfMonth(1)]).toEqual([2, 2]);

    await sql`update lake_months set appends = ${LAKE_APPENDS} where month = ${monthOf(0)}::date`.execute(
      t.system.db,
    );
    await append();
    expect([await filesOfMonth(0), await filesOfMonth(1)]).toEqual([1, 2]);
    // Simulates a month whose data was written before the month had ended.
    await age(24 * 62 + LAKE_SETTLE_HOURS);
    await sql`update lake_months set written_at = now() where month = ${monthOf(0)}::date`.execute(
      t.system.db,
    );
    await append();
    const isOver = Date.now() > monthsAgo(0) + LAKE_SETTLE_HOURS * 3_600_000;
    expect([await filesOfMonth(0), await filesOfMonth(1)]).toEqual([1, isOver ? 1 : 2]);
    await expectSame(t);

    await sql`delete from events where user_id = 'u3'`.execute(t.system.db);
    await append();
    expect((await readLake(t.system, 'default')).some(({ user_id }) => user_id === 'u3')).toBe(true);
    await age(25);
    await append();
    await expectSame(t);
  });

  test('metrics report the time since which the lake lacks events', async () => {
    const lag = async () =>
      ((await figures.retention?.read(t.system.pool)) as { lakeLag: number } | undefined)?.lakeLag;
    expect(await lag()).toBe(0);
    expect((await t.system.metrics.render()).text).toContain('sluice_lake_lag_seconds 0');
    await addEvents(t, [0], 1);
    await append();
    const files = { ...t.system.files, createAs: () => Promise.reject(new Error('no bucket')) };
    await addEvents(t, [0], 1);
    await append({ ...t.system, files });
    await sql`update event_prunings set failing_since = now() - interval '1 hour' where work = 'append'`.execute(
      t.system.db,
    );
    const { rows } = await sql`select error from event_prunings where work = 'append'`.execute(t.system.db);
    expect(rows).toEqual([{ error: expect.stringContaining('no bucket') }]);
    expect(await lag()).toBeGreaterThanOrEqual(3_600);
    await append();
    expect(await lag()).toBeLessThan(3_600);
    await expectSame(t);
  });

  test('hot files leave the lake without LAKE_EVERY, and return with it', async () => {
    await addEvents(t, [0, 1], 10);
    await append();
    await pruneEvents({
      ...t.system,
      config: { ...t.system.config, eventRetentionDays: 0, lakeEveryMs: null },
    });
    expect(await files()).toEqual([]);
    await pruneEvents(t.system);
    await expectSame(t);
  });
});

describe('months that leave the database', () => {
  // proves: lake-appends, archives
  test('hot files with exactly their events are kept, and others are rewritten', async () => {
    await addEvents(t, [0, 6, 7, 8], 30);
    await append();
    await addEvents(t, [7], 5);
    const before = await files();
    const events = await everywhere();
    // Changes an event directly in the table, so the ledger does not record the change.
    await sql`update events set metadata = '{"n":-1}' where event_id in (
      select min(event_id) from events where inserted_at >= ${monthOf(8)}::date and inserted_at < ${monthOf(7)}::date
    )`.execute(t.system.db);
    const changedEvents = await everywhere();
    expect(changedEvents).not.toBe(events);
    expect(await pruneEvents(t.system)).toMatchObject({ months: 3, archived: 95, problem: null });
    expect(await everywhere()).toEqual(changedEvents);
    const filesAfter = await files();
    const ids = (list: readonly Hot[], ago: number) =>
      list.filter(({ month }) => month === monthOf(ago)).map(({ id }) => id);
    expect(ids(filesAfter, 6)).toEqual(ids(before, 6));
    expect(ids(filesAfter, 7)).toEqual([expect.any(Number)]);
    expect(ids(filesAfter, 7)).not.toEqual(ids(before, 7));
    expect(ids(filesAfter, 8)).toEqual([expect.any(Number)]);
    expect(ids(filesAfter, 8)).not.toEqual(ids(before, 8));
    expect(filesAfter.filter(({ hot }) => hot).map(({ month }) => month)).toEqual([monthOf(0)]);
    await expectSame(t);
    await pruneEvents(t.system);
    await expectNamedFiles(t);
  });

  // proves: lake-appends
  test('damaged and missing hot files are rewritten', async () => {
    await addEvents(t, [0, 6, 7], 30);
    await append();
    const events = await everywhere();
    const { rows } = await sql<{ ref: FileRef; bytes: number }>`
      select file_ref as ref, byte_count as bytes
      from lake_files
      where kind = 'data' and month < ${monthOf(3)}::date
      order by month`.execute(t.system.db);
    const [removed, damaged] = rows as [(typeof rows)[0], (typeof rows)[0]];
    await t.system.files.remove(removed.ref);
    const bytes = await t.system.files.readRange(damaged.ref, 0, damaged.bytes);
    bytes.fill(0x55, 100, 200);
    const writer = await t.system.files.createAs(damaged.ref);
    await writer.write(bytes);
    await writer.commit();
    expect(await pruneEvents(t.system)).toMatchObject({ months: 2, archived: 60, problem: null });
    expect(await everywhere()).toEqual(events);
    await expectSame(t);
  });

  // proves: lake-appends, archives
  test('months stay in the database while their files are not stored as written', async () => {
    await addEvents(t, [0, 7], 30);
    await append();
    await addEvents(t, [7], 1);
    const events = await everywhere();
    const damage: FileStore['createAs'] = async (ref) => {
      const writer = await t.system.files.createAs(ref);
      const write = (bytes: Uint8Array) =>
        writer.write(ref.endsWith('.parquet') ? bytes.toReversed() : bytes);
      return { ref, write, commit: () => writer.commit(), discard: () => writer.discard() };
    };
    const files = { ...t.system.files, createAs: damage };
    expect(await pruneEvents({ ...t.system, files })).toMatchObject({
      months: 0,
      archived: 0,
      problem: expect.stringContaining('not stored as it was written'),
    });
    expect(await everywhere()).toEqual(events);
    expect(await pruneEvents(t.system)).toMatchObject({ months: 1, archived: 31, problem: null });
    expect(await everywhere()).toEqual(events);
    await expectSame(t);
  });

  // proves: lake-appends
  test('each event is in the lake once, even if only events of some names leave a month', async () => {
    await apply(t, t, { event_retention: [{ key: 'signup', days: 300 }] });
    await addEvents(t, [0, 6, 7], 30);
    await append();
    const events = await everywhere();
    expect(await pruneEvents(t.system)).toMatchObject({ archived: 40, months: 0, problem: null });
    expect(await everywhere()).toEqual(events);
    expect(await expectSame(t)).toHaveLength(90);
    await addEvents(t, [6], 4, { name: 'signup' });
    await pruneEvents(t.system);
    expect(await expectSame(t)).toHaveLength(94);
    await apply(t, t, { event_retention: [] });
    await pruneEvents(t.system);
    expect(await expectSame(t)).toHaveLength(94);
    expect((await files()).filter(({ hot }) => hot)).toHaveLength(1);
  });
});

describe('a deletion in the lake', () => {
  // proves: lake-appends
  test('a deleted person is removed from every file at once, and all else stays', async () => {
    await addEvents(t, [0, 1, 7], 40);
    await pruneEvents(t.system);
    await addEvents(t, [1], 4, { user: 'doomed', named: true });
    await append();
    await addEvents(t, [0], 4, { user: 'doomed' });
    const deletion = await acceptDeletion(t.system, environmentId, 'users', ['doomed', 'u3']);
    const eventsOfUser = (await readLake(t.system, 'default')).filter(
      ({ user_id }) => user_id === 'u3',
    ).length;
    expect(await deletion.run()).toMatchObject({ status: 'completed' });
    expect(await deletion.outcomes()).toEqual({
      doomed: ['deleted', 8, 0],
      u3: ['deleted', eventsOfUser, 0],
    });
    await expectSame(t);
    await expectNamedFiles(t);
    await append();
    await expectSame(t);

    const companies = await acceptDeletion(t.system, environmentId, 'companies', ['c2']);
    expect(await companies.run()).toMatchObject({ status: 'completed' });
    await expectSame(t);
    // Only the deletion has changed files, so no month may be rewritten.
    await age(25);
    const filesBefore = await files();
    await append();
    expect(await files()).toEqual(filesBefore);
  });

  // proves: lake-erasure
  test('a deleted person is removed from a month whose table is not yet dropped', async () => {
    await addEvents(t, [7], 10);
    await addEvents(t, [7], 2, { user: 'doomed', company: 'c9' });
    await append();
    const table = async () => {
      const { rows } = await sql<{ name: string }>`
        select table_name as name from event_retirements where state <> 'removed'`.execute(t.system.db);
      return sql.table(rows[0]?.name ?? '');
    };
    const remaining = async () =>
      (
        await sql<{ user_id: string; company_id: string | null }>`select * from ${await table()}`.execute(
          t.system.db,
        )
      ).rows;
    const readRange: FileStore['readRange'] = async (ref, start, end) => {
      await sql`create or replace view holder as select event_id from ${await table()}`.execute(t.system.db);
      return t.system.files.readRange(ref, start, end);
    };
    const result = await pruneEvents({ ...t.system, files: { ...t.system.files, readRange } });
    expect(result.problem).toContain('cannot drop table');
    expect((await remaining()).filter(({ user_id: id }) => id === 'doomed')).toHaveLength(2);
    const companies = await acceptDeletion(t.system, environmentId, 'companies', ['c9']);
    expect(await companies.run()).toMatchObject({ status: 'completed' });
    expect((await remaining()).filter(({ company_id: id }) => id === 'c9')).toEqual([]);
    const deletion = await acceptDeletion(t.system, environmentId, 'users', ['doomed']);
    expect(await deletion.run()).toMatchObject({ status: 'completed' });
    expect(await deletion.outcomes()).toEqual({ doomed: ['deleted', 2, 0] });
    expect((await remaining()).map(({ user_id: id }) => id)).not.toContain('doomed');
    await sql`drop view holder`.execute(t.system.db);
    await pruneEvents(t.system);
    expect(await expectSame(t)).toHaveLength(10);
  });

  // proves: lake-erasure
  test.each([
    ['users', deleteEvents, 'doomed'],
    ['companies', releaseEvents, 'c9'],
  ] as const)(
    'files that were started before events of deleted %s were erased are not taken',
    async (_, erase, id) => {
      await addEvents(t, [0], 4, { user: 'doomed', company: 'c9', named: true });
      await append();
      const { db } = t.system;
      const [month = missing()] = await listOpenMonths(db);
      const started = (await readMonth(db, month)) ?? missing();
      const batch = { deletionId: 0, environmentId, ids: [id] };
      expect(await db.transaction().execute((transaction) => erase(transaction, batch, 10))).toBe(4);
      expect(await settleMonth(db, month, started, { cursor: started.cursor ?? '', isReplaced: true })).toBe(
        false,
      );
      const current = (await readMonth(db, month)) ?? missing();
      expect(current.removals, 'the deletion erases its files itself').toBe(started.removals);
      expect(await settleMonth(db, month, current, { cursor: started.cursor ?? '', isReplaced: true })).toBe(
        true,
      );
    },
  );

  // proves: lake-appends
  test('a failed deletion leaves the lake incomplete for at most a day', async () => {
    await addEvents(t, [0], 5, { user: 'kept' });
    await append();
    const deletion = await acceptDeletion(t.system, environmentId, 'users', ['kept']);
    await sql`create function fail() returns trigger language plpgsql as $$ begin raise 'no'; end $$`.execute(
      t.system.db,
    );
    await sql`create trigger fail before delete on events for each row execute function fail()`.execute(
      t.system.db,
    );
    await deletion.run().catch(() => undefined);
    expect(await readLake(t.system, 'default').catch(() => [])).toEqual([]);
    const { deletionId } = await deletion.look();
    await failDeletion(t.system, deletionId, { code: 'internal_error', message: 'no' });
    await sql`drop trigger fail on events`.execute(t.system.db);
    await age(25);
    await append();
    expect(await expectSame(t)).toHaveLength(5);
  });

  // proves: lake-appends
  test('an append during a deletion does not restore the person', async () => {
    await addEvents(t, [0], 5);
    await addEvents(t, [0], 1, { user: 'doomed' });
    const deletion = await acceptDeletion(t.system, environmentId, 'users', ['doomed']);
    let isDeleted = false;
    const store: FileStore = {
      ...t.system.files,
      // `size` is called after the snapshot was written, but before it is committed.
      async size(ref) {
        if (!isDeleted) {
          isDeleted = true;
          expect(await deletion.run()).toMatchObject({ status: 'completed' });
        }
        return t.system.files.size(ref);
      },
    };
    await append({ ...t.system, files: store });
    expect(isDeleted).toBe(true);
    await append();
    expect(await expectSame(t)).toHaveLength(5);
    await pruneEvents(t.system);
    await expectNamedFiles(t);
  });
});

/**
 * The test simulates a crash at every 79th of about 200 steps. A large run simulates a crash at
 * every step.
 */
const stride = process.env['SLUICE_LARGE'] === '1' ? 1 : 79;

// proves: archives, lake-appends
test('no event is repeated or lost when an append, a compaction or a drop dies', async () => {
  await apply(t, t, { event_retention: [{ key: 'signup', days: 0 }] });
  let hasSurvived = false;
  for (let dieAt = 1; !hasSurvived; dieAt += stride) {
    await addEvents(t, [0, 1, 7], 3);
    await addEvents(t, [8], 2, { name: 'seen' });
    await age(25);
    await sql`update lake_months set removals = removals + 1 where month = ${monthOf(1)}::date`.execute(
      t.system.db,
    );
    const events = await everywhere();
    const mortal = mortalSystem(t, dieAt);
    await pruneEvents(mortal.context).catch(() => undefined);
    hasSurvived = mortal.isAlive();
    expect(await everywhere()).toEqual(events);
    await pruneEvents(t.system);
    expect(await everywhere()).toEqual(events);
    await expectSame(t);
  }
  // Makes the files two days older.
  await sql`update lake_files set created_at = created_at - interval '2 days'`.execute(t.system.db);
  await pruneEvents(t.system);
  await expectNamedFiles(t);
});
