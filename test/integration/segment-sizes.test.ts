import { sql } from 'kysely';
import { beforeEach, expect, test } from 'vitest';
import { sizesJob } from '../../jobs/prune.ts';
import { schedulePruning } from '../../src/background-jobs/prune.ts';
import { countSizes, createSegment } from '../../src/definitions/segments.ts';
import type { StoredSegment } from '../../src/domain/definitions.ts';
import { SEGMENT_SIZE_DAYS } from '../../src/domain/limits.ts';
import { listSizes, readDay, storeSize } from '../../src/postgres/stores/segments.ts';
import { previewSegment } from '../../src/profiles/segments.ts';
import { systemOfFile } from '../support/system.ts';
import { expireTaskLeases, makeTasksDue, runDueTasks, takeTask } from '../support/tasks.ts';
import { waitFor } from '../support/wait-for.ts';

const t = await systemOfFile();
const { db } = t.system;
const neighbour = await t.addEnvironment('neighbour');
const never = new AbortController().signal;

const make = (key: string, definition: object, { environment } = t as Pick<typeof t, 'environment'>) =>
  createSegment(db, environment.environmentId, { key, title: key, definition });
const users = (ids: readonly string[], { environment } = t as Pick<typeof t, 'environment'>) =>
  sql`
  insert into users (environment_id, user_id, metadata, first_seen_at, last_seen_at)
  select ${environment.environmentId}, id, '{"plan": "pro"}', now(), now() from unnest(${ids}::text[]) as id`.execute(
    db,
  );
const today = async () => (await readDay(db)).day;
const sizesOf = async ({ id }: StoredSegment) => (await listSizes(db, id)).map(({ users }) => users);

beforeEach(async () => {
  await sql`delete from segments`.execute(db);
  await sql`delete from users`.execute(db);
});

// proves: segment-sizes
test('each segment of each environment gets one size a day, however often it is counted', async () => {
  const pro = await make('pro', { property: 'plan', equals: 'pro' });
  const free = await make('free', { property: 'plan', equals: 'free' });
  const theirs = await make('pro', { property: 'plan', equals: 'pro' }, neighbour);
  await users(['u1', 'u2']);
  await users(['u1'], neighbour);
  await countSizes(t.system, never);
  await users(['u3']);
  await Promise.all([countSizes(t.system, never), countSizes(t.system, never)]);
  expect(await Promise.all([pro, free, theirs].map(sizesOf))).toEqual([[2], [0], [1]]);
  expect(await listSizes(db, pro.id)).toEqual([{ day: await today(), users: 2 }]);
});

// proves: segment-sizes
test('a worker that is lost while it counts loses nothing, and the next count is due the next day', async () => {
  const segments = [await make('a', { event: 'a' }), await make('b', { event: 'b' })];
  await schedulePruning({ ...t.system, queue: { notify: async () => undefined } });
  const lost = await takeTask(t.system, sizesJob);
  expect(lost?.kind).toBe('sizes');
  await storeSize(db, segments[0]?.id ?? 0, { day: await today(), users: 0 });
  await expireTaskLeases(db, 'sizes');
  await sql`update tasks set lease_until = null, not_before = now() where kind = 'sizes'`.execute(db);
  expect(await runDueTasks(t.system, [sizesJob])).toBe(1);
  expect(await Promise.all(segments.map(sizesOf))).toEqual([[0], [0]]);
  const { rows } = await sql<{ isTomorrow: boolean }>`
    select not_before::date = current_date + 1 as "isTomorrow" from tasks where kind = 'sizes'`.execute(db);
  expect(rows).toEqual([{ isTomorrow: true }]);
  await makeTasksDue(db, 'sizes');
  expect(await runDueTasks(t.system, [sizesJob])).toBe(1);
  expect(await Promise.all(segments.map(sizesOf))).toEqual([[0], [0]]);
});

// proves: segment-sizes
test('a segment that cannot be counted holds up no other; sizes go with their segment, and after their time', async () => {
  const broken = await make('broken', { event: 'a' });
  const fine = await make('fine', { event: 'a' });
  await sql`update segments set definition = '{"of": "a newer version"}' where segment_id = ${broken.id}`.execute(
    db,
  );
  const old = async (days: number) =>
    sql`insert into segment_sizes select ${fine.id}, current_date - ${days}::integer, 1`.execute(db);
  await old(SEGMENT_SIZE_DAYS);
  await old(SEGMENT_SIZE_DAYS + 1);
  await countSizes(t.system, never);
  expect(await Promise.all([broken, fine].map(sizesOf))).toEqual([[null], [1, 0]]);
  await sql`delete from segments where segment_id = ${fine.id}`.execute(db);
  expect(await sizesOf(fine)).toEqual([]);
  await storeSize(db, fine.id, { day: await today(), users: 1 });
  expect(await sizesOf(fine)).toEqual([]);
});

// proves: leaving-client
test('a count ends at once when nobody waits for it any more', async () => {
  const counts = () =>
    sql`
    select 1 from pg_stat_activity
    where datname = current_database() and application_name = 'sluice segment' and wait_event_type = 'Lock'`.execute(
      db,
    );
  const leaving = new AbortController();
  const segment = { kind: 'property', property: 'plan', test: { kind: 'exists' }, negated: false } as const;
  await db.transaction().execute(async (transaction) => {
    await sql`lock table users in access exclusive mode`.execute(transaction);
    const options = { timeoutMs: 3_600_000, signal: leaving.signal };
    const counting = previewSegment(t.system, t.environment.environmentId, segment, options);
    const outcome = counting.catch((error: unknown) => error);
    await waitFor('the count to wait for the table', async () => (await counts()).rows.length === 1);
    leaving.abort(new Error('left'));
    expect(await outcome).toEqual(new Error('left'));
    await waitFor('the session to end', async () => (await counts()).rows.length === 0);
  });
});
