import { parquetMetadata } from 'hyparquet';
import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createEnvironment } from '../../../src/access/environment-store.ts';
import type { WrittenFile } from '../../../src/capabilities/lake/file-store.ts';
import { readGroups } from '../../../src/capabilities/lake/read-events.ts';
import type { LakeColumn } from '../../../src/capabilities/lake/table-store.ts';
import { columnList } from '../../../src/capabilities/lake/table-store.ts';
import type { FileRef, FileStore } from '../../../src/files/file-store.ts';
import { prune } from '../../../src/jobs/prune.ts';
import { exportAll, records, texts } from '../../support/files/export-files.ts';
import {
  eventTables,
  heldEvents,
  insertEvents,
  instantBetween,
  monthsAgo,
  type StoredEvent,
} from '../../support/oracles/retention.ts';
import { apply } from '../../support/servers/definitions.ts';
import { acceptDeletion } from '../../support/servers/deletions.ts';
import { serve } from '../../support/servers/http.ts';
import { openTestSystem, type TestSystem } from '../../support/servers/system.ts';
import { expectNamedFiles, readEverywhere, readLake } from './support/lake.ts';

let t: TestSystem;
let environmentId: number;
beforeEach(async () => {
  t = await openTestSystem({ settings: { EVENT_RETENTION_DAYS: '100', LAKE_EVERY: '1h' } });
  environmentId = t.environment.environmentId;
});
afterEach(() => t.close());

const applyColumns = (items: readonly LakeColumn[]) =>
  apply(t, t, { lake_columns: items }, { lists: [columnList] });

const names = ['page_view', 'signup', '=cmd()', `o'dd "näme"`];
const metadatas = [
  {},
  { page: '/a,b\n"c"', amount: 12.5, deep: { list: [1, null, 'x'] } },
  { 'é🙂': '\u2028', big: 1e21, small: -0.000001, '': '\\' },
];
const oddIds = ['\uFEFFmark', '😀', '\uFFFD', '=1+1', 'ü', 'a"b', "it's", ' '];

/** Creates events in the latest months, with ids of all kinds, some at the same time. */
function makeEvents(environment: number, count: number, months = 10): StoredEvent[] {
  let seed = 42;
  const random = (): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return seed / 2 ** 31;
  };
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const shared = instantBetween(monthsAgo(9), monthsAgo(8), 0.5);
  return Array.from({ length: count }, (_, n) => {
    const month = Math.floor(random() * months);
    return {
      environment,
      id: `${n % 5 === 0 ? pick(oddIds) : ''}${n}`,
      name: pick(names),
      user: `u${Math.floor(random() * 40)}`,
      company: random() < 0.5 ? `c${n % 7}` : null,
      at:
        n % 10 === 0 ? shared : instantBetween(monthsAgo(month), monthsAgo(month - 1) - 86_400_000, random()),
      metadata: pick(metadatas),
      named: random() < 0.5,
    };
  });
}

const makePageViews = (count: number) =>
  makeEvents(environmentId, count).map((event) => ({ ...event, name: 'page_view' }));

async function archives() {
  const { rows } = await sql<{ environment: number; state: string; rows: number; bytes: number }>`
    select environment_id as environment, state, row_count as rows, byte_count as bytes
    from lake_files
    where kind = 'data' and not is_hot
    order by file_id`.execute(t.system.db);
  return rows;
}

describe('the lake in other engines', () => {
  // proves: lake
  test('another engine reads the events of an export, even after moves and deletions', async () => {
    const neighbour = (await createEnvironment(t.system.db, 'neighbour')).environmentId;
    await insertEvents(t, [...makeEvents(environmentId, 400), ...makeEvents(neighbour, 50)]);
    await apply(t, t, { event_retention: [{ key: 'signup', days: 300 }] });
    const allEvents = await everywhere();
    await prune(t.system);
    expect(await readLake(t.system, 'default')).toEqual(allEvents);
    await apply(t, t, { event_retention: [] });
    await prune(t.system);
    expect(await readLake(t.system, 'default')).toEqual(allEvents);
    expect((await archives()).length).toBeGreaterThan(3);

    const deletion = await acceptDeletion(t.system, environmentId, 'users', ['u1', 'u2']);
    expect(await deletion.run()).toMatchObject({ status: 'completed' });
    const remaining = allEvents.filter(({ user_id }) => user_id !== 'u1' && user_id !== 'u2');
    expect(await readLake(t.system, 'default')).toEqual(remaining);
    expect(await readLake(t.system, 'neighbour')).toHaveLength(50);
    await expectNamedFiles(t);
  });

  // proves: lake-columns
  test('selected properties are columns with unique ids, empty in older files', async () => {
    const eventOf = (month: number, id: string, metadata: StoredEvent['metadata']) => ({
      environment: environmentId,
      id,
      user: 'u',
      company: null,
      name: 'seen',
      metadata,
      named: true,
      at: instantBetween(monthsAgo(month), monthsAgo(month - 1), 0.5),
    });
    const values = {
      plan: 'größe \u2028"x"',
      amount: 12.5,
      on: true,
      at: '2026-02-03T04:05:06.123456+01:00',
    };
    const at = new Date('2026-02-03T03:05:06.123Z');
    const otherTypes = { plan: 1, amount: '12.5', on: 'true', at: 'soon' };
    const noValues = { plan: null, amount: null, on: null, at: null };
    const allColumns = [
      { key: 'amount', type: 'numeric' },
      { key: 'at', type: 'date' },
      { key: 'on', type: 'boolean' },
      { key: 'plan', type: 'string' },
    ] as const;
    await insertEvents(t, [eventOf(9, 'old', values)]);
    await prune(t.system);
    await applyColumns([...allColumns]);
    await insertEvents(t, [
      eventOf(8, 'a', values),
      eventOf(8, 'b', otherTypes),
      eventOf(8, 'c', {}),
      eventOf(7, 'd', values),
    ]);
    await prune(t.system);
    const columns = async () =>
      Object.fromEntries(
        (await readLake(t.system, 'default')).map(({ event_id, ...row }) => {
          const { plan = null, amount = null, on = null, at = null } = row as Record<string, unknown>;
          return [event_id, { plan, amount, on, at }];
        }),
      );
    expect(await columns()).toEqual({
      old: noValues,
      a: { ...values, at },
      b: noValues,
      c: noValues,
      d: { ...values, at },
    });
    const idsBefore = await fieldIds();

    await applyColumns([allColumns[1], { key: 'amount', type: 'string' }, allColumns[2]]);
    await insertEvents(t, [eventOf(6, 'e', otherTypes)]);
    await prune(t.system);
    await applyColumns([...allColumns.slice(1), { key: 'amount', type: 'string' }]);
    const deletion = await acceptDeletion(t.system, environmentId, 'users', ['nobody']);
    await deletion.run();
    await insertEvents(t, [eventOf(5, 'f', values)]);
    await prune(t.system);
    const idsAfter = await fieldIds();
    expect(idsAfter).toMatchObject({ at: idsBefore['at'], on: idsBefore['on'] });
    const columnOf = new Map<number, string>();
    for (const { ref, bytes } of await archiveRefs()) {
      const file = await t.system.files.readRange(ref, 0, bytes);
      for (const { field_id: id = 0, name, type } of parquetMetadata(
        new Uint8Array(file).buffer,
      ).schema.slice(1)) {
        expect(columnOf.get(id) ?? `${name} ${type}`).toBe(`${name} ${type}`);
        columnOf.set(id, `${name} ${type}`);
      }
    }
    // There are 14 column ids. 8 are for the fields of an event, and 4 for properties. The other 2
    // were the first ids of two properties: one was replaced, and the other was removed and added
    // again.
    expect([...columnOf.keys()].sort((x, y) => x - y)).toEqual(Array.from({ length: 14 }, (_, n) => n + 1));
    for (const [name, id] of Object.entries(idsAfter)) expect(columnOf.get(id)).toMatch(`${name} `);
    expect(await columns()).toMatchObject({
      e: { amount: '12.5', plan: null },
      f: { amount: null, plan: values.plan },
    });
    expect((await storedIds(environmentId)).sort()).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'old']);
  });

  // proves: lake
  test('the files are found at their new location after a move of the file store', async () => {
    await insertEvents(t, makePageViews(300));
    await prune(t.system);
    const rowsBefore = await readLake(t.system, 'default');
    expect(rowsBefore.length).toBeGreaterThan(100);
    const files = { ...t.system.files, location: 's3://elsewhere/below' };
    await prune({ ...t.system, files });
    expect(await readLake({ ...t.system, files }, 'default')).toEqual(rowsBefore);
    await prune({ ...t.system, files });
    await expectNamedFiles(t);
  });
});

const everywhere = () => readEverywhere(t.system, environmentId);

// proves: archives
test('archived events are in the lake and not in exports, which state the limit', async () => {
  const neighbour = (await createEnvironment(t.system.db, 'neighbour')).environmentId;
  await insertEvents(t, [...makeEvents(environmentId, 500, 14), ...makeEvents(neighbour, 50, 14)]);
  // `signup` events are kept longer, so pruning cannot drop the whole month. Pruning removes the
  // other events in pieces.
  await apply(t, t, { event_retention: [{ key: 'signup', days: 300 }] });
  await apply(t, { environment: { environmentId: neighbour } } as TestSystem, {
    event_retention: [{ key: '*', days: 0 }],
  });
  const eventsBefore = await everywhere();
  const eventsHeld = await heldEvents(t);
  const server = await serve(t);
  try {
    const preview = async (body: object) => {
      const answer = await server.fetch('/api/v1/analytics/exports/preview', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      return (await answer.json()) as { rows: number; warnings: readonly { details: string }[] };
    };
    const keptFrom = async (query: string) => {
      const answer = await server.fetch(`/v1/users/u1/events?${query}`);
      return ((await answer.json()) as { metadata: Record<string, unknown> }).metadata['events_kept_from'];
    };
    const events = { event_type: ['events'] };
    expect((await preview(events)).warnings).toEqual([]);
    expect(await keptFrom('')).toBeNull();

    const result = await prune(t.system);
    expect(result.events).toBeGreaterThan(200);
    expect(result.archived).toBe(result.events);
    expect((await heldEvents(t)).events).toHaveLength(eventsHeld.events.length - result.events);
    expect(await everywhere()).toEqual(eventsBefore);
    const { rows } = await sql<{ keptFrom: Date; held: number }>`
        select
          (select (max(month) + interval '1 month') at time zone 'UTC' from event_retirements) as "keptFrom",
          (select count(*)::int from events where environment_id = ${environmentId}) as held`.execute(
      t.system.db,
    );
    const since = `${new Date(rows[0]?.keptFrom ?? 0).toISOString().slice(0, -1)}000Z`;
    const message = `The range begins before ${since}. Retention may have removed older events or moved them to the lake`;
    expect(await preview(events)).toMatchObject({
      rows: rows[0]?.held,
      warnings: [{ message, details: 'from' }],
    });
    expect((await preview({ ...events, from: since })).warnings).toEqual([]);
    expect((await preview({ event_type: ['users'] })).warnings).toEqual([]);
    expect(await keptFrom('')).toBe(since);
    expect(await keptFrom(`from=${since}`)).toBeNull();
    const exported = await exportAll(t.system, environmentId, { datasets: ['events'] });
    const files = await texts(t.system, exported);
    expect(records(files['events.ndjson'])).toHaveLength(rows[0]?.held ?? 0);
    expect(JSON.parse(files['manifest.json'] ?? '')).toMatchObject({ events_kept_from: since });
  } finally {
    await server.stop();
  }

  await apply(t, t, { event_retention: [] });
  const second = await prune(t.system);
  expect(second.events).toBeGreaterThan(25);
  expect(await everywhere()).toEqual(eventsBefore);
  expect(
    (await archives()).every(({ state, environment }) => state === 'stored' && environment === environmentId),
  ).toBe(true);
  expect((await eventTables(t)).filter((name) => name.startsWith('retired'))).toEqual([]);
  const ofNeighbour = (list: readonly string[]) => list.filter((key) => key.startsWith(`${neighbour}/`));
  expect(ofNeighbour((await heldEvents(t)).events)).toEqual(ofNeighbour(eventsHeld.events));
});

describe('the deletion of archived events', () => {
  // proves: archives
  test('a deletion counts and removes archived events of its users, and no others', async () => {
    const events = makePageViews(500);
    const neighbour = (await createEnvironment(t.system.db, 'neighbour')).environmentId;
    await insertEvents(t, [...events, ...makeEvents(neighbour, 50)]);
    await prune(t.system);
    const doomed = ['u3', 'u17', 'u39'];
    const eventsOfUser = (id: string): number => events.filter(({ user }) => user === id).length;
    const remainingIds = events.filter(({ user }) => !doomed.includes(user)).map(bareId);
    const neighbourIds = await storedIds(neighbour);

    const deletion = await acceptDeletion(t.system, environmentId, 'users', [...doomed, 'nobody']);
    expect(await deletion.run()).toMatchObject({ status: 'completed' });
    expect(await deletion.outcomes()).toEqual({
      ...Object.fromEntries(doomed.map((id) => [id, ['deleted', eventsOfUser(id), 0]])),
      nobody: ['not_found', 0, 0],
    });
    expect((await storedIds(environmentId)).sort()).toEqual(remainingIds.sort());
    expect(await storedIds(neighbour)).toEqual(neighbourIds);
    const archived = await archives();
    expect(archived.every(({ state }) => state === 'stored')).toBe(true);
    await expectNamedFiles(t);
    for (const ref of await archiveRefs()) {
      for (const id of await usersIn(ref)) expect(doomed).not.toContain(id);
    }
  });

  // proves: lake-erasure
  test('a deletion opens only files that may have the person, and leaves no byte', async () => {
    const at = (month: number): string => instantBetween(monthsAgo(month), monthsAgo(month - 1), 0.5);
    const event = { environment: environmentId, name: 'seen', company: null, metadata: {}, named: true };
    const people = ['ann', 'bob', 'cleo', 'person-in-question'];
    await insertEvents(
      t,
      people.flatMap((user, n) => [
        { ...event, id: `of ${user}`, user, at: at(n + 6) },
        { ...event, id: `month ${n}`, user: 'dave', at: at(n + 6) },
      ]),
    );
    await prune(t.system);
    const filesBefore = await archiveRefs();
    expect(filesBefore).toHaveLength(4);
    const openedRefs = new Set<FileRef>();
    const store = t.system.files;
    const files = {
      ...store,
      readRange: (ref: FileRef, from: number, to: number) => {
        openedRefs.add(ref);
        return store.readRange(ref, from, to);
      },
    };
    const deletion = await acceptDeletion({ ...t.system, files }, environmentId, 'users', [
      'person-in-question',
    ]);
    expect(await deletion.run()).toMatchObject({ status: 'completed' });
    expect(filesBefore.filter(({ ref }) => openedRefs.has(ref))).toHaveLength(1);
    const filesAfter = await archiveRefs();
    expect(filesBefore.filter(({ ref }) => filesAfter.every((file) => file.ref !== ref))).toHaveLength(1);
    await expectNamedFiles(t);
    const { rows } = await sql<{ ref: FileRef; bytes: number }>`
      select file_ref as ref, byte_count as bytes from lake_files`.execute(t.system.db);
    for (const { ref, bytes } of rows)
      expect((await store.readRange(ref, 0, bytes)).includes('person-in-question')).toBe(false);

    await sql`update lake_files set filter = null`.execute(t.system.db);
    expect(await (await acceptDeletion(t.system, environmentId, 'users', ['bob'])).run()).toMatchObject({
      status: 'completed',
    });
    expect((await storedIds(environmentId)).sort()).toEqual([
      ...['month 0', 'month 1', 'month 2', 'month 3', 'of ann', 'of cleo'],
    ]);
  });

  test('archived events of deleted companies lose their company', async () => {
    const events = makePageViews(400);
    const eventsOfCompany = (id: string): number => events.filter(({ company }) => company === id).length;
    await insertEvents(t, events);
    await prune(t.system);
    const idsBefore = await storedIds(environmentId);
    const deletion = await acceptDeletion(t.system, environmentId, 'companies', ['c1', 'c5']);
    expect(await deletion.run()).toMatchObject({ status: 'completed' });
    expect(await deletion.outcomes()).toEqual({
      c1: ['deleted', eventsOfCompany('c1'), 0],
      c5: ['deleted', eventsOfCompany('c5'), 0],
    });
    expect(await storedIds(environmentId)).toEqual(idsBefore);
    const companies = (await everywhere()).map((row) => (row as { company_id?: string | null }).company_id);
    expect(companies).not.toContain('c1');
    expect(companies).not.toContain('c5');
    expect(companies.filter((id) => id === 'c2').length).toBeGreaterThan(10);
  });

  test('a user who is deleted during the archiving is not in the archive', async () => {
    const at = (n: number): string => instantBetween(monthsAgo(9), monthsAgo(8), n);
    const event = { environment: environmentId, name: 'page_view', company: null, metadata: {}, named: true };
    await insertEvents(t, [
      { ...event, id: 'a', user: 'doomed', at: at(0.1) },
      { ...event, id: 'b', user: 'kept', at: at(0.2) },
    ]);
    const deletion = await acceptDeletion(t.system, environmentId, 'users', ['doomed']);
    let isDeleted = false;
    const files: FileStore = {
      ...t.system.files,
      // `readRange` is called after the files were written from the snapshot, but before they are
      // committed.
      async readRange(...range) {
        if (!isDeleted) {
          isDeleted = true;
          await deletion.run();
        }
        return t.system.files.readRange(...range);
      },
    };
    expect(await prune({ ...t.system, files })).toMatchObject({ archived: 1 });
    expect(isDeleted).toBe(true);
    expect(await deletion.outcomes()).toEqual({ doomed: ['deleted', 1, 0] });
    expect(await storedIds(environmentId)).toEqual(['b']);
    await prune(t.system);
    expect(await archives()).toMatchObject([{ state: 'stored', rows: 1 }]);
    await expectNamedFiles(t);
  });
});

// proves: s3
test('events are archived and deleted on S3 as in a folder', async () => {
  await t.close();
  t = await openTestSystem({
    storage: 's3',
    settings: { EVENT_RETENTION_DAYS: '100', LAKE_EVERY: '1h' },
  });
  environmentId = t.environment.environmentId;
  const events = makePageViews(300);
  await insertEvents(t, events);
  const eventsBefore = await everywhere();
  expect((await prune(t.system)).archived).toBeGreaterThan(100);
  expect(await everywhere()).toEqual(eventsBefore);
  const deletion = await acceptDeletion(t.system, environmentId, 'users', ['u1']);
  expect(await deletion.run()).toMatchObject({ status: 'completed' });
  expect((await storedIds(environmentId)).sort()).toEqual(
    events
      .filter(({ user }) => user !== 'u1')
      .map(bareId)
      .sort(),
  );
});

async function fieldIds(): Promise<Readonly<Record<string, number>>> {
  const { rows } = await sql<{ ref: FileRef; bytes: number }>`
    select file_ref as ref, byte_count as bytes
    from lake_files
    where kind = 'metadata' and state = 'stored' and environment_id = ${environmentId}`.execute(t.system.db);
  const [{ ref, bytes }] = rows as [{ ref: FileRef; bytes: number }];
  const { schemas } = JSON.parse((await t.system.files.readRange(ref, 0, bytes)).toString());
  return Object.fromEntries(
    schemas[0].fields.map((field: { name: string; id: number }) => [field.name, field.id]),
  );
}

/** Removes a byte order mark from the id, as `comparable` does. */
const bareId = ({ id }: StoredEvent): string => id.replace('\uFEFF', '');

async function storedIds(environment: number): Promise<string[]> {
  return (await readEverywhere(t.system, environment)).map((row) => row.event_id);
}

async function archiveRefs() {
  const { rows } = await sql<WrittenFile>`
    select file_ref as ref, byte_count as bytes, row_count as rows, encode(sha256, 'hex') as sha256
    from lake_files
    where kind = 'data' and state = 'stored' and environment_id = ${environmentId}`.execute(t.system.db);
  return rows;
}

async function usersIn(file: Awaited<ReturnType<typeof archiveRefs>>[number]): Promise<(string | null)[]> {
  const users: (string | null)[] = [];
  for await (const group of readGroups(t.system.files, file)) users.push(...(await group.column('user_id')));
  return users;
}
