import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createEnvironment } from '../../src/access/environments.ts';
import { prune } from '../../src/background-jobs/prune.ts';
import { exportFormats } from '../../src/domain/export.ts';
import type { SegmentTest } from '../../src/export/filter/filter.ts';
import { apply } from '../support/catalogue.ts';
import { type ExportOptions, exportAll, storedBytes } from '../support/export-files.ts';
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
  t = await openTestSystem({ settings: { EVENT_RETENTION_DAYS: '100', EVENT_ARCHIVE: 'parquet' } });
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

/** Events of all months of two years, some at the same instant, with ids of all kinds. */
function makeEvents(environment: number, count: number): StoredEvent[] {
  let seed = 42;
  const random = (): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return seed / 2 ** 31;
  };
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const shared = instantBetween(monthsAgo(9), monthsAgo(8), 0.5);
  return Array.from({ length: count }, (_, n) => {
    const month = Math.floor(random() * 24);
    return {
      ...{ environment, id: `${n % 5 === 0 ? pick(oddIds) : ''}${n}`, name: pick(names) },
      ...{ user: `u${Math.floor(random() * 40)}`, company: random() < 0.5 ? `c${n % 7}` : null },
      at:
        n % 10 === 0 ? shared : instantBetween(monthsAgo(month), monthsAgo(month - 1) - 86_400_000, random()),
      ...{ metadata: pick(metadatas), named: random() < 0.5 },
    };
  });
}

const inCompanies: SegmentTest = (user) => sql<boolean>`${sql.ref(`${user}.metadata`)} ->> 'plan' = 'pro'`;

const filters: readonly ExportOptions[] = [
  {},
  {
    from: instantBetween(monthsAgo(15), monthsAgo(14), 0.4),
    to: instantBetween(monthsAgo(3), monthsAgo(2), 0.6),
  },
  { userIds: ['u1', 'u7', 'nobody'] },
  { companyIds: ['c1', 'c2'], eventNames: ['signup', '=cmd()'] },
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

/** A hash of what the events' files say, for each filter and format. */
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
      for (const { filename, rows } of written.files) {
        if (filename !== 'manifest.json') hash.update(`${filename} ${rows}`).update(bytes[filename] ?? '');
      }
      hashes[`${format} ${at}`] = hash.digest('hex');
    }
  }
  return hashes;
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
    from event_archives
    order by archive_id`.execute(t.system.db);
  return rows;
}

describe('archived events', () => {
  test('are exported as before, byte for byte, in every format, with every filter; what is kept by name stays where it was', async () => {
    const neighbour = (await createEnvironment(t.system.db, 'neighbour')).environmentId;
    await insertEvents(t, [...makeEvents(environmentId, 4_000), ...makeEvents(neighbour, 300)]);
    await addUsers();
    // Of some names the months stay, so that those go in pieces.
    await apply(t, t, { event_retention: [{ key: 'signup', days: 300 }] });
    await apply(t, { environment: { environmentId: neighbour } } as TestSystem, {
      event_retention: [{ key: '*', days: 0 }],
    });
    const before = await exportedEvents();
    const held = await heldEvents(t);

    const pruned = await prune(t.system);
    expect(pruned.events).toBeGreaterThan(2_000);
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
});
