import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { parquetMetadata, parquetReadObjects } from 'hyparquet';
import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { prune } from '../../src/background-jobs/prune.ts';
import { type ExportFormat, exportFormats } from '../../src/domain/export.ts';
import { MAX_PAGE_LAKE_FILES } from '../../src/domain/limits.ts';
import type { SegmentTest } from '../../src/export/filter.ts';
import type { FileRef, FileStore } from '../../src/files/file-store.ts';
import { readGroups } from '../../src/lake/read-events.ts';
import { createEnvironment } from '../../src/postgres/stores/environments.ts';
import type { EventPosition, UserEventsQuery } from '../../src/postgres/stores/events.ts';
import { readUserHistory } from '../../src/profiles/user-events.ts';
import { pruneEvents } from '../../src/retention/prune-events.ts';
import { apply } from '../support/definitions.ts';
import { acceptDeletion } from '../support/deletions.ts';
import { type ExportOptions, exportAll, records, storedBytes, texts } from '../support/export-files.ts';
import { serve } from '../support/http.ts';
import { comparable, expectNamedFiles, type LakeRow, mortalSystem, readLake } from '../support/lake.ts';
import {
  eventTables,
  heldEvents,
  insertEvents,
  instantBetween,
  monthsAgo,
  type StoredEvent,
} from '../support/retention.ts';
import { openTestSystem, type TestSystem } from '../support/system.ts';

let t: TestSystem;
let environmentId: number;
beforeEach(async () => {
  t = await openTestSystem({ settings: { EVENT_RETENTION_DAYS: '100', LAKE: 'archive' } });
  environmentId = t.environment.environmentId;
});
afterEach(() => t.close());

const names = ['page_view', 'signup', '=cmd()', `o'dd "näme"`];
const metadatas = [
  {},
  { page: '/a,b\n"c"', amount: 12.5, deep: { list: [1, null, 'x'] } },
  { 'é🙂': '\u2028', big: 1e21, small: -0.000001, '': '\\' },
];
const oddIds = ['\uFEFFmark', '😀', '\uFFFD', '=1+1', 'ü', 'a"b', "it's", ' '];

/** Events of the latest months, some at the same instant, with ids of all kinds. */
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
      ...{ environment, id: `${n % 5 === 0 ? pick(oddIds) : ''}${n}`, name: pick(names) },
      ...{ user: `u${Math.floor(random() * 40)}`, company: random() < 0.5 ? `c${n % 7}` : null },
      at:
        n % 10 === 0 ? shared : instantBetween(monthsAgo(month), monthsAgo(month - 1) - 86_400_000, random()),
      ...{ metadata: pick(metadatas), named: random() < 0.5 },
    };
  });
}

const makePageViews = (count: number) =>
  makeEvents(environmentId, count).map((each) => ({ ...each, name: 'page_view' }));

const inCompanies: SegmentTest = (user) => sql<boolean>`${sql.ref(`${user}.metadata`)} ->> 'plan' = 'pro'`;

const monthStart = (ago: number): string =>
  new Date(monthsAgo(ago)).toISOString().replace('.000Z', '.000000Z');

const filters: readonly ExportOptions[] = [
  {},
  {
    from: instantBetween(monthsAgo(15), monthsAgo(14), 0.4),
    to: instantBetween(monthsAgo(3), monthsAgo(2), 0.6),
  },
  { userIds: ['u1', 'u7', 'nobody'] },
  { from: monthStart(8), to: monthStart(7) },
  { companyIds: ['c1', 'c2'], eventNames: ['signup', '=cmd()'] },
  { eventKinds: ['page_view'], exclusions: [{ kind: 'user', pattern: 'u2' }] },
  { layout: 'stream', exclusions: [{ kind: 'property', pattern: 'page' }] },
  {
    exclusions: [
      { kind: 'user', pattern: 'u1*' },
      { kind: 'event', pattern: 'page_view' },
      { kind: 'property', pattern: 'de*' },
      { kind: 'company', pattern: 'c3' },
    ],
  },
  { segment: inCompanies },
  { excludedSegments: [inCompanies] },
];

/** A hash of what the events' files say, for each filter and format. Row groups of Parquet may end elsewhere. */
async function exportedEvents(
  options: { readonly splitBytes?: number } = {},
): Promise<Record<string, string>> {
  const hashes: Record<string, string> = {};
  for (const [at, filter] of filters.entries()) {
    for (const format of exportFormats) {
      const written = await exportAll(t.system, environmentId, {
        ...filter,
        ...options,
        datasets: ['events'],
        format,
      });
      const bytes = await storedBytes(t.system, written);
      const hash = createHash('sha256');
      hash.update(/"content_sha256": .*/.exec(String(bytes['manifest.json']))?.[0] ?? '');
      for (const { filename, rows, sha256 } of written.files) {
        const file = bytes[filename] ?? Buffer.alloc(0);
        expect(createHash('sha256').update(file).digest('hex')).toBe(sha256);
        if (filename === 'manifest.json') continue;
        hash.update(`${filename} ${rows}`);
        hash.update(format === 'parquet' ? JSON.stringify(await parquetRows(file)) : file);
      }
      hashes[`${format} ${at}`] = hash.digest('hex');
    }
  }
  return hashes;
}

/** What another reader finds in it. */
async function parquetRows(file: Buffer): Promise<unknown[]> {
  const parsers = {
    timestampFromMicroseconds: String,
    stringFromBytes: (bytes: Uint8Array | undefined) => bytes && Buffer.from(bytes).toString(),
  } as never;
  return parquetReadObjects({ file: new Uint8Array(file).buffer, parsers });
}

async function addUsers(): Promise<void> {
  await sql`
    insert into users (environment_id, user_id, metadata)
    select ${environmentId}, 'u' || n, jsonb_build_object('plan', case when n % 3 = 0 then 'pro' else 'free' end)
    from generate_series(0, 30) n`.execute(t.system.db);
}

async function archives() {
  const { rows } = await sql<{ environment: number; state: string; rows: number; bytes: number }>`
    select environment_id as environment, state, row_count as rows, byte_count as bytes
    from lake_files
    where kind = 'data'
    order by file_id`.execute(t.system.db);
  return rows;
}

describe('other engines', () => {
  // proves: lake
  test('find the tables in the catalog, and read from them what an export gave, whatever has been moved and deleted', async () => {
    const neighbour = (await createEnvironment(t.system.db, 'neighbour')).environmentId;
    await insertEvents(t, [...makeEvents(environmentId, 1_500), ...makeEvents(neighbour, 200)]);
    await apply(t, t, { event_retention: [{ key: 'signup', days: 300 }] });
    const all = new Map((await exportedRows()).map((row) => [row.event_id, row]));
    const expectMoved = async (): Promise<void> => {
      const { rows } = await sql<{ id: string }>`
        select event_id as id from events where environment_id = ${environmentId}`.execute(t.system.db);
      const held = new Set(rows.map(({ id }) => id.replace('\uFEFF', '')));
      const moved = [...all.values()].filter(({ event_id }) => !held.has(event_id));
      expect(moved.length).toBeGreaterThan(200);
      expect(sorted(await readLake(t.system, 'default'))).toEqual(sorted(moved));
    };
    await prune(t.system);
    await expectMoved();
    await apply(t, t, { event_retention: [] });
    await prune(t.system);
    await expectMoved();

    const deletion = await acceptDeletion(t.system, environmentId, 'users', ['u1', 'u2']);
    expect(await deletion.run()).toMatchObject({ status: 'completed' });
    const kept = [...all.values()].filter(({ user_id }) => user_id !== 'u1' && user_id !== 'u2');
    for (const row of await exportedRows()) expect(all.get(row.event_id)).toEqual(row);
    const found = await readLake(t.system, 'default');
    expect(found.length).toBeGreaterThan(500);
    expect(kept).toEqual(expect.arrayContaining(found.slice(0, 50)));
    expect(found.filter(({ user_id }) => user_id === 'u1' || user_id === 'u2')).toEqual([]);
    expect((await readLake(t.system, 'neighbour')).length).toBeGreaterThan(50);
    await expectNamedFiles(t);
  });

  // proves: lake-columns
  test('find chosen properties in columns of their own; a column that is added later is empty in older files, and no id is given twice', async () => {
    const of = (month: number, id: string, metadata: StoredEvent['metadata']) => ({
      ...{ environment: environmentId, id, user: 'u', company: null, name: 'seen', metadata, named: true },
      at: instantBetween(monthsAgo(month), monthsAgo(month - 1), 0.5),
    });
    const values = {
      plan: 'größe \u2028"x"',
      amount: 12.5,
      on: true,
      at: '2026-02-03T04:05:06.123456+01:00',
    };
    const at = new Date('2026-02-03T03:05:06.123Z');
    const others = { plan: 1, amount: '12.5', on: 'true', at: 'soon' };
    const none = { plan: null, amount: null, on: null, at: null };
    const all = [
      { key: 'amount', type: 'numeric' },
      { key: 'at', type: 'date' },
      { key: 'on', type: 'boolean' },
      { key: 'plan', type: 'string' },
    ] as const;
    await insertEvents(t, [of(9, 'old', values)]);
    await prune(t.system);
    await apply(t, t, { lake_columns: [...all] });
    await insertEvents(t, [of(8, 'a', values), of(8, 'b', others), of(8, 'c', {}), of(7, 'd', values)]);
    await prune(t.system);
    const columns = async () =>
      Object.fromEntries(
        (await readLake(t.system, 'default')).map(({ event_id, ...row }) => {
          const { plan = null, amount = null, on = null, at = null } = row as Record<string, unknown>;
          return [event_id, { plan, amount, on, at }];
        }),
      );
    expect(await columns()).toEqual({
      ...{ old: none, a: { ...values, at }, b: none, c: none, d: { ...values, at } },
    });
    const before = await fieldIds();

    // `plan` is removed and comes again; `amount` has another type.
    await apply(t, t, { lake_columns: [all[1], { key: 'amount', type: 'string' }, all[2]] });
    await insertEvents(t, [of(6, 'e', others)]);
    await prune(t.system);
    await apply(t, t, { lake_columns: [...all.slice(1), { key: 'amount', type: 'string' }] });
    const deletion = await acceptDeletion(t.system, environmentId, 'users', ['nobody']);
    await deletion.run();
    await insertEvents(t, [of(5, 'f', values)]);
    await prune(t.system);
    const after = await fieldIds();
    expect(after).toMatchObject({ at: before['at'], on: before['on'] });
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
    // 8 of events, 4 of properties, 2 that came instead.
    expect([...columnOf.keys()].sort((x, y) => x - y)).toEqual(Array.from({ length: 14 }, (_, n) => n + 1));
    for (const [name, id] of Object.entries(after)) expect(columnOf.get(id)).toMatch(`${name} `);
    expect(await columns()).toMatchObject({
      e: { amount: '12.5', plan: null },
      f: { amount: null, plan: values.plan },
    });
    expect((await exportedIds(environmentId)).sort()).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'old']);
  });

  // proves: lake
  test('find the files where they are once the file store has moved', async () => {
    await insertEvents(t, makePageViews(300));
    await prune(t.system);
    const before = sorted(await readLake(t.system, 'default'));
    expect(before.length).toBeGreaterThan(100);
    const files = { ...t.system.files, location: 's3://elsewhere/below' };
    await prune({ ...t.system, files });
    expect(sorted(await readLake({ ...t.system, files }, 'default'))).toEqual(before);
    await prune({ ...t.system, files });
    await expectNamedFiles(t);
  });
});

const sorted = (rows: readonly LakeRow[]) =>
  [...rows].sort((a, b) => (a.event_id < b.event_id ? -1 : a.event_id > b.event_id ? 1 : 0));

async function exportedRows(): Promise<LakeRow[]> {
  return records(await exportOnce()).map(comparable);
}

describe('archived events', () => {
  // proves: archives
  test('are exported as before in every format, with every filter: all but Parquet byte for byte; what is kept by name stays where it was', async () => {
    const neighbour = (await createEnvironment(t.system.db, 'neighbour')).environmentId;
    await insertEvents(t, [...makeEvents(environmentId, 2_000, 14), ...makeEvents(neighbour, 200, 14)]);
    await addUsers();
    // Of some names the months stay, so that those go in pieces.
    await apply(t, t, { event_retention: [{ key: 'signup', days: 300 }] });
    await apply(t, { environment: { environmentId: neighbour } } as TestSystem, {
      event_retention: [{ key: '*', days: 0 }],
    });
    const before = await exportedEvents();
    expect(new Set(Object.values(before)).size).toBe(filters.length * exportFormats.length);
    const held = await heldEvents(t);

    const pruned = await prune(t.system);
    expect(pruned.events).toBeGreaterThan(800);
    expect(pruned.archived).toBe(pruned.events);
    expect((await heldEvents(t)).events).toHaveLength(held.events.length - pruned.events);
    expect(await exportedEvents()).toEqual(before);

    // The rest goes too: then there are several archives of a month.
    await apply(t, t, { event_retention: [] });
    const again = await prune(t.system);
    expect(again.events).toBeGreaterThan(100);
    expect(await exportedEvents()).toEqual(before);
    expect(
      (await archives()).every(
        ({ state, environment }) => state === 'stored' && environment === environmentId,
      ),
    ).toBe(true);
    expect((await eventTables(t)).filter((name) => name.startsWith('retired'))).toEqual([]);
    const own = (list: readonly string[]) => list.filter((key) => key.startsWith(`${neighbour}/`));
    expect(own((await heldEvents(t)).events)).toEqual(own(held.events));
  });

  // proves: archives
  test('are copied into a Parquet file row group by row group, unless the export leaves some of them out or names them otherwise', async () => {
    await insertEvents(t, makePageViews(1_000));
    const options: ExportOptions = { datasets: ['events'], format: 'parquet' };
    const exported = async (more: ExportOptions = {}): Promise<Buffer> => {
      const written = await exportAll(t.system, environmentId, { ...options, ...more });
      return (await storedBytes(t.system, written))['events.parquet'] ?? Buffer.alloc(0);
    };
    const before = await parquetRows(await exported());
    await prune(t.system);
    const copied = await exported();
    expect(await parquetRows(copied)).toEqual(before);
    const groups = await Promise.all((await archiveRefs()).map(groupsOf));
    expect(groups.flat().length).toBeGreaterThan(3);
    const isIn = (file: Buffer) => groups.flat().map((group) => file.includes(group));
    expect(isIn(copied)).not.toContain(false);
    expect(isIn(await exported({ exclusions: [{ kind: 'property', pattern: 'page' }] }))).not.toContain(true);
  });

  // proves: archives, loads-back
  test('have the content hash that other formats have, although row groups that are copied are not unpacked for it', async () => {
    const at = instantBetween(monthsAgo(9), monthsAgo(8), 0.5);
    await insertEvents(
      t,
      makePageViews(7_000).map((each) => ({ ...each, at })),
    );
    const hashOf = async (format: ExportFormat): Promise<string> => {
      const written = await exportAll(t.system, environmentId, { datasets: ['events'], format });
      const bytes = await storedBytes(t.system, written);
      return /"content_sha256": .*/.exec(String(bytes['manifest.json']))?.[0] ?? '';
    };
    const live = await hashOf('parquet');
    expect(await hashOf('ndjson')).toBe(live);
    await prune(t.system);
    for (const format of ['parquet', 'ndjson'] as const) expect(await hashOf(format)).toBe(live);
    // Not read again: another sum makes another hash.
    await sql`update lake_files set sums = overlay(sums placing decode(repeat('01', 32), 'hex') from 33) where kind = 'data'`.execute(
      t.system.db,
    );
    expect(await hashOf('parquet')).not.toBe(live);
    expect(await hashOf('ndjson')).toBe(live);
    await sql`update lake_files set sums = null`.execute(t.system.db);
    expect(await hashOf('parquet')).toBe(live);
    // A deletion writes the sums of what it leaves.
    await (await acceptDeletion(t.system, environmentId, 'users', ['u3'])).run();
    const { rows } = await sql<{ sums: Buffer }>`
      select sums from lake_files where kind = 'data' and state = 'stored'`.execute(t.system.db);
    expect(rows[0]?.sums.length).toBeGreaterThan(2 * 32);
    expect(await hashOf('parquet')).toBe(await hashOf('ndjson'));
  });

  // proves: archives
  test('are exported once and whole while months are being archived', async () => {
    await insertEvents(t, makeEvents(environmentId, 3_000));
    await addUsers();
    const before = await exportOnce();
    let pruning = true;
    let exports = 0;
    const look = async (): Promise<void> => {
      while (pruning) {
        expect(await exportOnce()).toBe(before);
        exports++;
      }
    };
    const looking = Promise.all([look(), look()]);
    const pruned = await prune(t.system);
    pruning = false;
    await looking;
    expect(pruned.archived).toBeGreaterThan(1_000);
    expect(exports).toBeGreaterThan(3);
    expect(await exportOnce()).toBe(before);
  });

  /** Of some 60 steps; a large run tries all of them. */
  const stride = process.env['SLUICE_LARGE'] === '1' ? 1 : 5;

  // proves: archives
  test('are neither lost nor doubled, whichever step a pruning dies at', async () => {
    await apply(t, t, { event_retention: [{ key: 'signup', days: 0 }] });
    let survived = false;
    let inserted = 0;
    for (let dieAt = 1; !survived; dieAt += stride) {
      const events = [8, 9].flatMap((count) =>
        ['page_view', 'signup'].map((name, n) => ({
          ...{ environment: environmentId, id: `${dieAt} ${count} ${name}`, name, user: 'u', company: null },
          ...{ at: instantBetween(monthsAgo(count), monthsAgo(count - 1), 0.1 + 0.5 * n), metadata: {} },
          named: true,
        })),
      );
      // One month goes whole, of the other something stays.
      const given = events.filter(({ name, id }) => name === 'page_view' || id.includes(' 9 '));
      inserted += given.length;
      await insertEvents(t, given);
      const before = await exportOnce();
      const mortal = mortalSystem(t, dieAt);
      await pruneEvents(mortal.context).catch(() => undefined);
      survived = mortal.isAlive();
      expect(await exportOnce()).toBe(before);
      await pruneEvents(t.system);
      expect(await exportOnce()).toBe(before);
      // Metadata that was replaced is left to those who read it until the next time.
      await pruneEvents(t.system);
      const { events: held, ids } = await heldEvents(t);
      expect(held.every((key) => key.endsWith('signup'))).toBe(true);
      expect(ids).toEqual(held);
      const stored = await archives();
      expect(stored.map(({ state }) => state)).toEqual(stored.map(() => 'stored'));
      expect(stored.reduce((sum, { rows }) => sum + rows, 0) + held.length).toBe(inserted);
      await expectNamedFiles(t);
    }
    expect((await eventTables(t)).filter((name) => name.startsWith('retired'))).toEqual([]);
  });

  test('that come again later are exported once', async () => {
    const at = instantBetween(monthsAgo(9), monthsAgo(8), 0.3);
    const event = makePageViews(1).map((each) => ({ ...each, at }));
    await insertEvents(t, event);
    const before = await exportOnce();
    for (let time = 0; time < 2; time++) {
      expect(await prune(t.system)).toMatchObject({ archived: time === 0 ? 1 : 0 });
      await insertEvents(t, event);
      expect(await exportOnce()).toBe(before);
    }
  });
});

describe('the events of a user', () => {
  const walk = async (
    query: Partial<UserEventsQuery>,
    files: Pick<FileStore, 'readRange'> = t.system.files,
  ) => {
    const events: string[] = [];
    const all = { userId: 'u1', from: null, to: null, eventName: null, limit: 7, bytes: 1_000, ...query };
    for (let before: EventPosition | null = null, pages = 0; ; pages++) {
      expect(pages).toBeLessThan(100);
      const context = { ...t.system, files: { ...t.system.files, ...files } };
      const page = await readUserHistory(context, environmentId, { ...all, before });
      events.push(...page.events.map(({ json }) => json));
      before = page.next;
      if (before === null) return events;
    }
  };

  // proves: lake-history
  test('are listed to the last, however many files hold events of the same time', async () => {
    const ids: string[] = [];
    for (let file = 0; file < MAX_PAGE_LAKE_FILES + 3; file++) {
      const event = (place: number): StoredEvent => ({
        ...{ environment: environmentId, id: `${file} ${place}`, name: 'seen', user: 'u1', company: null },
        at: instantBetween(monthsAgo(9), monthsAgo(8), place + file / 1_000),
        ...{ metadata: {}, named: true },
      });
      await insertEvents(t, [event(0.1), event(0.9)]);
      await pruneEvents(t.system);
      ids.push(`${file} 0.1`, `${file} 0.9`);
    }
    const walked = (await walk({})).map((json) => (JSON.parse(json) as { event_id: string }).event_id);
    expect(walked.sort()).toEqual(ids.sort());
  });

  // proves: lake-history
  test('are listed as before they left the database, page by page; files that cannot hold them are not opened', async () => {
    await insertEvents(t, makeEvents(environmentId, 2_000, 18));
    const at = instantBetween(monthsAgo(12), monthsAgo(11), 0.5);
    const rare = { environment: environmentId, id: 'rare', name: 'seen', user: 'rare', company: null };
    await insertEvents(t, [{ ...rare, at, metadata: {}, named: true }]);
    await apply(t, t, { event_retention: [{ key: 'signup', days: 300 }] });
    const queries: Partial<UserEventsQuery>[] = [
      {},
      { limit: 500, bytes: 1e6 },
      { userId: 'u2', eventName: 'page_view' },
      { userId: 'u3', from: monthStart(12), to: monthStart(7) },
      { userId: 'rare' },
      { userId: 'nobody' },
    ];
    const walkAll = async () => {
      const found: string[][] = [];
      for (const query of queries) found.push(await walk(query));
      return found;
    };
    const before = await walkAll();
    expect(before.map(({ length }) => length > 0)).toEqual([true, true, true, true, true, false]);
    // They have left the table of events, and not arrived.
    const createAs = () => Promise.reject(new Error('no room'));
    await pruneEvents({ ...t.system, files: { ...t.system.files, createAs } }).catch(() => undefined);
    expect((await eventTables(t)).filter((name) => name.startsWith('retired'))).not.toEqual([]);
    expect(await walkAll()).toEqual(before);
    await prune(t.system);
    expect((await archiveRefs()).length).toBeGreaterThan(8);
    expect(await walkAll()).toEqual(before);
    await apply(t, t, { event_retention: [] });
    await prune(t.system);
    expect(await walkAll()).toEqual(before);

    const opened = new Set<FileRef>();
    const readRange: FileStore['readRange'] = (ref, start, end) => {
      opened.add(ref);
      return t.system.files.readRange(ref, start, end);
    };
    expect(await walk({ userId: 'rare' }, { readRange })).toEqual(before[4]);
    const files = { ...t.system.files, readRange };
    const written = await exportAll({ ...t.system, files }, environmentId, { userIds: ['rare'] });
    expect(written.files.find(({ dataset }) => dataset === 'events')?.rows).toBe(1);
    expect(opened.size).toBeLessThanOrEqual(2);
  });

  test('are enough for history to know the user when all of them are in the lake', async () => {
    const at = instantBetween(monthsAgo(12), monthsAgo(11), 0.5);
    const event = { environment: environmentId, id: 'one', name: 'seen', user: 'cold', company: null };
    await insertEvents(t, [{ ...event, at, metadata: {}, named: true }]);
    await prune(t.system);
    expect((await archiveRefs()).length).toBeGreaterThan(0);
    const server = await serve(t);
    try {
      for (const part of ['history', 'events?event_name=none']) {
        const statusOf = async (id: string) => (await server.fetch(`/v1/users/${id}/${part}`)).status;
        expect([part, await statusOf('cold'), await statusOf('nobody')]).toEqual([part, 200, 404]);
      }
    } finally {
      await server.stop();
    }
  });
});

describe('deletion and archived events', () => {
  // proves: archives
  test('events of deleted users go from the archives, and are counted; all else stays; what was replaced is removed', async () => {
    const events = makePageViews(2_000);
    const neighbour = (await createEnvironment(t.system.db, 'neighbour')).environmentId;
    await insertEvents(t, [...events, ...makeEvents(neighbour, 200)]);
    await prune(t.system);
    const doomed = ['u3', 'u17', 'u39'];
    const of = (id: string): number => events.filter(({ user }) => user === id).length;
    const kept = events.filter(({ user }) => !doomed.includes(user)).map(({ id }) => id);
    const others = await exportedIds(neighbour);

    const deletion = await acceptDeletion(t.system, environmentId, 'users', [...doomed, 'nobody']);
    expect(await deletion.run()).toMatchObject({ status: 'completed' });
    expect(await deletion.outcomes()).toEqual({
      ...Object.fromEntries(doomed.map((id) => [id, ['deleted', of(id), 0]])),
      nobody: ['not_found', 0, 0],
    });
    expect((await exportedIds(environmentId)).sort()).toEqual(kept.sort());
    expect(await exportedIds(neighbour)).toEqual(others);
    const stored = await archives();
    expect(stored.every(({ state }) => state === 'stored')).toBe(true);
    await expectNamedFiles(t);
    for (const ref of await archiveRefs()) {
      for (const id of await usersIn(ref)) expect(doomed).not.toContain(id);
    }
  });

  // proves: lake-erasure
  test('a deletion opens only the files that may hold the person, and leaves no byte of the person in the lake', async () => {
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
    const before = await archiveRefs();
    expect(before).toHaveLength(4);
    const opened = new Set<FileRef>();
    const store = t.system.files;
    const files = {
      ...store,
      readRange: (ref: FileRef, from: number, to: number) => {
        opened.add(ref);
        return store.readRange(ref, from, to);
      },
    };
    const deletion = await acceptDeletion({ ...t.system, files }, environmentId, 'users', [
      'person-in-question',
    ]);
    expect(await deletion.run()).toMatchObject({ status: 'completed' });
    expect(before.filter(({ ref }) => opened.has(ref))).toHaveLength(1);
    const after = await archiveRefs();
    expect(before.filter(({ ref }) => after.every((file) => file.ref !== ref))).toHaveLength(1);
    await expectNamedFiles(t);
    const { rows } = await sql<{ ref: FileRef; bytes: number }>`
      select file_ref as ref, byte_count as bytes from lake_files`.execute(t.system.db);
    for (const { ref, bytes } of rows)
      expect((await store.readRange(ref, 0, bytes)).includes('person-in-question')).toBe(false);

    // Whoever is in a file without a filter is found as well.
    await sql`update lake_files set filter = null`.execute(t.system.db);
    expect(await (await acceptDeletion(t.system, environmentId, 'users', ['bob'])).run()).toMatchObject({
      status: 'completed',
    });
    expect((await exportedIds(environmentId)).sort()).toEqual([
      ...['month 0', 'month 1', 'month 2', 'month 3', 'of ann', 'of cleo'],
    ]);
  });

  test('archived events of deleted companies name them no more', async () => {
    const events = makePageViews(1_000);
    const of = (id: string): number => events.filter(({ company }) => company === id).length;
    await insertEvents(t, events);
    await prune(t.system);
    const all = await exportedIds(environmentId);
    const deletion = await acceptDeletion(t.system, environmentId, 'companies', ['c1', 'c5']);
    expect(await deletion.run()).toMatchObject({ status: 'completed' });
    expect(await deletion.outcomes()).toEqual({
      c1: ['deleted', of('c1'), 0],
      c5: ['deleted', of('c5'), 0],
    });
    expect(await exportedIds(environmentId)).toEqual(all);
    expect(await exportedIds(environmentId, { companyIds: ['c1', 'c5'] })).toEqual([]);
    expect((await exportedIds(environmentId, { companyIds: ['c2'] })).length).toBeGreaterThan(10);
  });

  test('a user who is deleted while the events are being archived is not in the archive', async () => {
    const at = (n: number): string => instantBetween(monthsAgo(9), monthsAgo(8), n);
    const event = { environment: environmentId, name: 'page_view', company: null, metadata: {}, named: true };
    await insertEvents(t, [
      { ...event, id: 'a', user: 'doomed', at: at(0.1) },
      { ...event, id: 'b', user: 'kept', at: at(0.2) },
    ]);
    const deletion = await acceptDeletion(t.system, environmentId, 'users', ['doomed']);
    let deleted = false;
    const files: FileStore = {
      ...t.system.files,
      // Written of the snapshot, and not yet taken.
      open(ref, range) {
        async function* read(): AsyncGenerator<Buffer> {
          if (!deleted) {
            deleted = true;
            await deletion.run();
          }
          yield* t.system.files.open(ref, range);
        }
        return Readable.from(read());
      },
    };
    expect(await prune({ ...t.system, files })).toMatchObject({ archived: 1 });
    expect(deleted).toBe(true);
    expect(await deletion.outcomes()).toEqual({ doomed: ['deleted', 1, 0] });
    expect(await exportedIds(environmentId)).toEqual(['b']);
    await prune(t.system);
    expect(await archives()).toMatchObject([{ state: 'stored', rows: 1 }]);
    await expectNamedFiles(t);
  });

  test('an export under way reads the archives to its end that a deletion replaces meanwhile', async () => {
    await insertEvents(t, makePageViews(300));
    await prune(t.system);
    const deletion = await acceptDeletion(t.system, environmentId, 'users', ['u1', 'u2']);
    const before = await exportedIds(environmentId);
    const during = await exportedIds(environmentId, {
      onSnapshot: async () => {
        expect(await deletion.run()).toMatchObject({ status: 'completed' });
      },
    });
    expect(during).toEqual(before);
    expect((await archives()).some(({ state }) => state === 'replaced')).toBe(true);
    expect((await exportedIds(environmentId)).length).toBeLessThan(before.length);
    await prune(t.system);
    expect((await archives()).some(({ state }) => state === 'replaced')).toBe(false);
  });
});

// proves: s3
test('on S3 events are archived, exported and deleted alike', async () => {
  await t.close();
  t = await openTestSystem({
    storage: 's3',
    settings: { EVENT_RETENTION_DAYS: '100', LAKE: 'archive' },
  });
  environmentId = t.environment.environmentId;
  const events = makePageViews(300);
  await insertEvents(t, events);
  const before = await exportOnce();
  expect((await prune(t.system)).archived).toBeGreaterThan(100);
  expect(await exportOnce()).toBe(before);
  const deletion = await acceptDeletion(t.system, environmentId, 'users', ['u1']);
  expect(await deletion.run()).toMatchObject({ status: 'completed' });
  expect((await exportedIds(environmentId)).sort()).toEqual(
    events
      .filter(({ user }) => user !== 'u1')
      .map(({ id }) => id)
      .sort(),
  );
});

/** The ids of the fields that the snapshot of the events has, by their names. */
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

/** The events' file of an export of everything. */
async function exportOnce(): Promise<string> {
  const written = await exportAll(t.system, environmentId, { datasets: ['events'] });
  return (await texts(t.system, written))['events.ndjson'] ?? '';
}

async function exportedIds(environment: number, options: ExportOptions = {}): Promise<string[]> {
  const written = await exportAll(t.system, environment, { ...options, datasets: ['events'] });
  return records((await texts(t.system, written))['events.ndjson']).map((row) => String(row['event_id']));
}

async function archiveRefs() {
  const { rows } = await sql<{ ref: FileRef; bytes: number; rows: number }>`
    select file_ref as ref, byte_count as bytes, row_count as rows
    from lake_files
    where kind = 'data' and state = 'stored' and environment_id = ${environmentId}`.execute(t.system.db);
  return rows;
}

/** The users of the events in a file. */
async function usersIn(file: Awaited<ReturnType<typeof archiveRefs>>[number]): Promise<(string | null)[]> {
  const users: (string | null)[] = [];
  for await (const group of readGroups(t.system.files, file))
    for (let row = 0; row < group.rows; row++) users.push(group.text('user_id', row));
  return users;
}

/** The bytes of each row group of a file. */
async function groupsOf({
  ref,
  bytes,
}: {
  readonly ref: FileRef;
  readonly bytes: number;
}): Promise<Buffer[]> {
  const file = await t.system.files.readRange(ref, 0, bytes);
  return parquetMetadata(new Uint8Array(file).buffer).row_groups.map((group) => {
    const start = Number(group.columns[0]?.file_offset);
    return file.subarray(start, start + Number(group.total_compressed_size));
  });
}
