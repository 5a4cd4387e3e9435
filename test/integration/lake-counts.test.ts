import fc from 'fast-check';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { findSegments } from '../../src/export/filter.ts';
import { createEnvironment } from '../../src/postgres/stores/environments.ts';
import { countActivity } from '../../src/profiles/activity.ts';
import { listProfiles } from '../../src/profiles/profiles.ts';
import { findSegmentsOf, previewSegment } from '../../src/profiles/segments.ts';
import { readSegment } from '../../src/segments/read-segment.ts';
import type { Segment } from '../../src/segments/segment.ts';
import { apply, segmentItem } from '../support/definitions.ts';
import { acceptDeletion } from '../support/deletions.ts';
import { type ExportOptions, everything, exportAll, records, texts } from '../support/export-files.ts';
import { takeOut } from '../support/lake.ts';
import { nextEnvironmentName } from '../support/load-file.ts';
import { definition, now, world } from '../support/random-segments.ts';
import { runs } from '../support/runs.ts';
import { usersInSegment, type World, type WorldEvent } from '../support/segment-evaluator.ts';
import { storeWorld } from '../support/store-world.ts';
import { systemOfFile, type TestSystem } from '../support/system.ts';
import { loadFile } from '../support/undo.ts';

const t = await systemOfFile({ settings: { LAKE: 'archive' } });

async function newEnvironment(content: World): Promise<number> {
  const { environmentId } = await createEnvironment(t.system.db, nextEnvironmentName());
  await storeWorld(t.system.db, environmentId, content);
  return environmentId;
}

function segmentOf(json: unknown): Segment {
  const { segment } = readSegment(json);
  if (segment === null) throw new Error('the definition is wrong');
  return segment;
}

/** Where the events of a name and month are. */
const places = ['stored', 'leaving', 'lake', 'lake and again'] as const;
type Place = (typeof places)[number];

/** Moves events to their places. Returns what ends it. */
async function scatter(environmentId: number, { events }: World, place: (of: string) => Place) {
  const months = new Set(events.map(({ name, at }) => `${at.slice(0, 7)} ${name}`));
  const ends: (() => Promise<void>)[] = [];
  for (const each of months) {
    const [month, event] = [each.slice(0, 7), each.slice(8)];
    const where = place(each);
    if (where === 'stored') continue;
    const { rows } = await sql<{ events: string }>`
      select json_agg(e)::text as events
      from events e
      where environment_id = ${environmentId} and event_name = ${event} and to_char(inserted_at, 'YYYY-MM') = ${month}`.execute(
      t.system.db,
    );
    const end = await takeOut(t, environmentId, { month, event });
    if (where === 'leaving') ends.push(end);
    else await end();
    if (where === 'lake and again')
      await sql`
        insert into events select * from json_populate_recordset(null::events, ${rows[0]?.events}::json)`.execute(
        t.system.db,
      );
  }
  return async () => {
    for (const end of ends) await end();
  };
}

const names = ['signed up', 'paid', '__proto__'];
const months = ['2026-10', '2026-11', '2026-12'];
const scattering = fc.record(
  Object.fromEntries(
    months.flatMap((month) => names.map((name) => [`${month} ${name}`, fc.constantFrom(...places)])),
  ),
) as fc.Arbitrary<Readonly<Record<string, Place>>>;

/** What callers see of events: of segments, users and days. */
async function look(environmentId: number, { users }: World) {
  const query = { days: 3_000, timeZone: 'Asia/Kolkata' };
  const activities: unknown[] = [];
  for (const { userId: id } of users)
    activities.push(await countActivity(t.system, 'users', environmentId, { id, ...query }));
  return {
    activities,
  };
}

// proves: lake-counts
test('segments and activity count every event once, in the database, leaving it, in the lake or in both', async () => {
  const property = fc.asyncProperty(
    world,
    fc.array(definition, { minLength: 8, maxLength: 16 }),
    scattering,
    async (content, definitions, where) => {
      const environmentId = await newEnvironment(content);
      const before = await look(environmentId, content);
      const end = await scatter(environmentId, content, (of) => where[of] ?? 'lake');
      for (const json of definitions) {
        const expected = usersInSegment(json, content);
        const found = await previewSegment(t.system, environmentId, segmentOf(json), { sample: 20, now });
        expect({ json, found: { ...found, sample: [...found.sample].sort() } }).toEqual({
          json,
          found: { users: expected.length, sample: expected },
        });
      }
      expect(await look(environmentId, content)).toEqual(before);
      await end();
      expect(await look(environmentId, content)).toEqual(before);
    },
  );
  await fc.assert(property, { endOnFailure: false, interruptAfterTimeLimit: 100_000, numRuns: runs(8) });
});

const event = (
  name: string,
  userId: string,
  at: string,
  metadata: Record<string, string> = {},
): WorldEvent => ({
  ...{ name, userId, at, metadata: new Map(Object.entries(metadata)) },
});
const userAt = (userId: string) => ({
  ...{
    userId,
    companyId: null,
    metadata: new Map(),
    firstSeenAt: '2020-01-01T00:00:00.000Z',
    lastSeenAt: '2020-01-01T00:00:00.000Z',
  },
});
const paid = (userId: string, day: number, amount = 1) =>
  event('paid', userId, `2026-10-${day}T12:00:00.000Z`, { amount: String(amount) });
const small: World = {
  users: ['a', 'b', 'c', 'd'].map(userAt),
  companies: [],
  events: [
    paid('a', 10),
    paid('a', 11),
    paid('b', 12),
    paid('anonymous', 13),
    paid('c', 14, 500),
    event('paid', 'b', '2026-11-19T12:00:00.000Z'),
  ],
  now,
};
const cold = { month: '2026-10', event: 'paid' };
const twice = { event: 'paid', at_least: 2 };
const never = { event: 'paid', never: true };
const dear = { event: 'paid', where: [{ property: 'amount', greater_than: 100 }] };
const membersOf = async (environmentId: number, json: object) =>
  (await previewSegment(t.system, environmentId, segmentOf(json), { sample: 10 })).sample;

async function smallEnvironment(isCold: boolean) {
  const environmentId = await newEnvironment(small);
  if (isCold) await (await takeOut(t, environmentId, cold))();
  const tenant = { environment: { environmentId } } as TestSystem;
  const segments = Object.entries({ twice, never, dear }).map(([key, definition]) =>
    segmentItem(key, { definition }),
  );
  await apply(t, tenant, { segments });
  const { rows } = await sql<{ key: string; id: number }>`
    select key, segment_id as id from segments where environment_id = ${environmentId}`.execute(t.system.db);
  return { environmentId, ids: Object.fromEntries(rows.map(({ key, id }) => [key, id])) };
}

// proves: lake-counts
test('lists of users, the segments of a user, and exports that choose or leave out a segment, count events of the lake', async () => {
  const seen: unknown[] = [];
  for (const isCold of [false, true]) {
    const { environmentId, ids } = await smallEnvironment(isCold);
    const pageOf = async (json: object) => {
      const filter = { properties: [], companyId: null, segment: segmentOf(json) };
      const { profiles } = await listProfiles(t.system, 'users', environmentId, filter, {
        limit: 10,
        after: null,
      });
      return profiles.map(({ key }) => key);
    };
    const exported = async (options: ExportOptions) => {
      const found = await findSegments(t.system.db, environmentId, { ...everything, ...options });
      return records(await exportedText(environmentId, { ...options, ...found }));
    };
    const keys = new Map(Object.entries(ids).map(([key, id]) => [id, key]));
    const segmentsOf = async (user: string) =>
      (await findSegmentsOf(t.system, environmentId, user)).ids.map((id) => keys.get(id)).sort();
    seen.push({
      pages: [await pageOf(twice), await pageOf(never), await pageOf(dear)],
      segments: [await segmentsOf('a'), await segmentsOf('b'), await segmentsOf('c'), await segmentsOf('d')],
      users: await exported({ datasets: ['users'], segmentId: ids['dear'] ?? 0 }),
      events: await exported({ datasets: ['events'], segmentId: ids['twice'] ?? 0 }),
      others: await exported({
        ...{ datasets: ['users', 'events'] },
        exclusions: [{ kind: 'segment', pattern: String(ids['twice']) }],
      }),
    });
  }
  expect(seen[1]).toEqual(seen[0]);
  expect(seen[1]).toMatchObject({
    pages: [['a', 'b'], ['d'], ['c']],
    segments: [['twice'], ['twice'], ['dear'], ['never']],
  });
});

async function exportedText(environmentId: number, options: ExportOptions): Promise<string> {
  const files = await texts(t.system, await exportAll(t.system, environmentId, options));
  return Object.entries(files)
    .flatMap(([name, text]) => (name === 'manifest.json' ? [] : text))
    .join('');
}

// proves: lake-counts
test('an alias counts as its person, also in the lake, and whom a deletion removes no more', async () => {
  const { environmentId } = await smallEnvironment(true);
  expect(await membersOf(environmentId, twice)).toEqual(['a', 'b']);
  await sql`
    insert into aliases (environment_id, alias, user_id, given_to, load_id)
    values (${environmentId}, 'anonymous', 'd', 'd', 0)`.execute(t.system.db);
  expect(await membersOf(environmentId, never)).toEqual([]);
  const query = { days: 1, timeZone: 'UTC' };
  const activity = (id: string) => countActivity(t.system, 'users', environmentId, { id, ...query });
  expect(await activity('d')).toMatchObject({ events: 1, isComplete: true, countedSince: null });
  await (await acceptDeletion(t.system, environmentId, 'users', ['a', 'd'])).run();
  expect(await membersOf(environmentId, { any: [twice, never, dear] })).toEqual(['b', 'c']);
  expect(await activity('a')).toMatchObject({ events: 0 });
});

// proves: lake-counts
test('a mirror of a segment removes nobody whose events in the lake keep them out of it', async () => {
  const { environmentId } = await smallEnvironment(true);
  const source = { mirror: 'remove', maxRemoved: '100%', mirrorSegment: 'never' } as const;
  await loadFile(t.system, environmentId, 'user_id,plan\nnew,pro\n', { source });
  const { rows } = await sql<{ id: string }>`
    select user_id as id from users where environment_id = ${environmentId} order by 1`.execute(t.system.db);
  expect(rows.map(({ id }) => id)).toEqual(['a', 'b', 'c', 'new']);
});

// proves: lake-counts
test('counts add up of events that are too large to be held together', async () => {
  const note = JSON.stringify('x'.repeat(1_500_000));
  const events = Array.from({ length: 7 }, (_, n) =>
    event('paid', 'a', `2026-10-1${n}T12:00:00.000Z`, { note }),
  );
  const environmentId = await newEnvironment({ ...small, events });
  await (await takeOut(t, environmentId, cold))();
  const where = [{ property: 'note', exists: true }];
  for (const [at_least, members] of [[7, ['a']] as const, [8, []] as const])
    expect(await membersOf(environmentId, { event: 'paid', at_least, where })).toEqual(members);
});
