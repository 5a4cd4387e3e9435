import { readFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { describe, expect, test } from 'vitest';
import { type Preset, presets } from '../../../src/domain/source.ts';
import {
  newEnvironment,
  readProfiles,
  readRejects,
  runManually,
  startManually,
} from '../../support/files/load-file.ts';
import { zipFile } from '../../support/files/zip-file.ts';
import { readEvents, type StoredEvent } from '../../support/oracles/events.ts';
import type { Profiles } from '../../support/oracles/serial-oracle.ts';
import { runs } from '../../support/runs.ts';
import { systemOfFile } from '../../support/servers/system.ts';

const t = await systemOfFile();

const sampleOf = (preset: Preset): Promise<string> =>
  readFile(new URL(`../../../examples/presets/${preset}.ndjson`, import.meta.url), 'utf8');

async function loadSample(preset: Preset) {
  const environment = await newEnvironment(t.system);
  const load = await runManually(
    await startManually(t.system, environment, await sampleOf(preset), { preset }),
  );
  const events = await readEvents(t.system, environment);
  return { load, events, ...(await readProfiles(t.system, environment)) };
}

const page = { hostname: 'app.example.com', pathname: '/billing', search: '?tab=1' };
/** A user who is known only from an event. */
const nobody = { company: null, metadata: {} };
const noOthers = { updated: 0, unchanged: 0, removed: 0, superseded: 0 };

/** Expects exactly these events, in any order. Compares only the given fields. */
function expectEvents(events: readonly StoredEvent[], ...expected: readonly Partial<StoredEvent>[]): void {
  expect(events).toHaveLength(expected.length);
  expect(events).toEqual(expect.arrayContaining(expected.map((event) => expect.objectContaining(event))));
}

describe('an export file of a product', () => {
  // proves: presets
  test('an export file of Mixpanel becomes users, companies and events', async () => {
    const { load, users, companies, events } = await loadSample('mixpanel');
    expect(load.tally).toEqual({ ...noOthers, read: 6, inserted: 6, rejected: 0 });
    expect(users).toEqual({
      ada: { company: 'northwind', metadata: { email: 'ada@example.com', name: 'Ada', plan: 'pro' } },
      grace: nobody,
    });
    expect(companies).toEqual({ northwind: { metadata: { name: 'Northwind', seats: 12 } } });
    expectEvents(
      events,
      {
        id: 'mp-1',
        type: 'track',
        name: 'Sign Up',
        user: 'ada',
        at: '2026-03-04T05:06:07.000Z',
        metadata: { plan: 'free', $browser: 'Firefox' },
      },
      {
        id: 'mp-2',
        user: 'ada',
        company: 'northwind',
        metadata: { amount: 49.5 },
      },
      { id: 'mp-3', type: 'page_view', metadata: expect.objectContaining(page) },
      { user: 'grace', metadata: { report: { kind: 'weekly', pages: 3 } } },
    );
  });

  // proves: presets
  test('an export file of Segment becomes users, companies and events', async () => {
    const { load, users, companies, events } = await loadSample('segment');
    // ada's identify call counts as superseded, because her group call follows it in the file.
    expect(load.tally).toEqual({ ...noOthers, read: 6, inserted: 5, superseded: 1, rejected: 0 });
    expect(users).toEqual({
      ada: { company: 'northwind', metadata: { email: 'ada@example.com', plan: 'pro' } },
      'a-2': nobody,
      grace: nobody,
    });
    expect(companies).toEqual({
      northwind: { metadata: { name: 'Northwind', seats: 12 } },
      contoso: { metadata: { name: 'Contoso' } },
    });
    expectEvents(
      events,
      {
        id: 'sg-4',
        name: 'Invoice Paid',
        user: 'ada',
        company: 'northwind',
        metadata: { amount: 49.5, context: { groupId: 'northwind' } },
      },
      {
        id: 'sg-5',
        type: 'page_view',
        name: 'page_view',
        user: 'a-2',
        metadata: expect.objectContaining({ ...page, title: 'Billing' }),
      },
      { id: 'sg-6', type: 'page_view', name: 'Settings', user: 'grace' },
    );
  });

  // proves: presets
  test('an export file of Amplitude becomes events with their users and companies', async () => {
    const { load, users, companies, events } = await loadSample('amplitude');
    expect(load.tally).toEqual({ ...noOthers, read: 5, inserted: 5, rejected: 0 });
    expect(users).toEqual({
      ada: { company: 'northwind', metadata: { plan: 'pro', referrer: 'newsletter' } },
      'd-2': nobody,
    });
    expect(companies).toEqual({ northwind: { metadata: { name: 'Northwind', seats: 12 } } });
    expectEvents(
      events,
      {
        id: 'am-1',
        name: 'Sign Up',
        user: 'ada',
        at: '2026-03-04T05:06:07.123Z',
        metadata: { plan: 'free', country: 'Norway', device_id: 'd-1' },
      },
      { id: 'am-3', company: 'northwind', metadata: { amount: 49.5 } },
      {
        id: 'am-4',
        type: 'page_view',
        user: 'd-2',
        metadata: expect.objectContaining(page),
      },
    );
  });

  // proves: presets
  test('an export file of PostHog becomes events with their users and companies', async () => {
    const { load, users, companies, events } = await loadSample('posthog');
    expect(load.tally).toEqual({ ...noOthers, read: 5, inserted: 5, rejected: 0 });
    expect(users).toEqual({
      ada: {
        company: 'northwind',
        metadata: { email: 'ada@example.com', plan: 'pro', referrer: 'search' },
      },
      grace: { company: null, metadata: { plan: 'team' } },
    });
    expect(companies).toEqual({ northwind: { metadata: { name: 'Northwind' } } });
    expectEvents(
      events,
      {
        id: '018f0000-0000-7000-8000-000000000002',
        name: 'invoice paid',
        company: 'northwind',
        user: 'ada',
        metadata: { amount: 49.5 },
      },
      {
        type: 'page_view',
        user: 'grace',
        at: '2026-03-05T05:07:00.500Z',
        metadata: expect.objectContaining({ ...page, $browser: 'Firefox' }),
      },
    );
  });

  // proves: presets
  test('an export file of Userpilot becomes events and profiles without browser data', async () => {
    const { load, users, companies, events } = await loadSample('userpilot');
    expect(load.tally).toEqual({ ...noOthers, read: 7, inserted: 7, rejected: 0 });
    expect(users).toEqual({
      ada: { company: 'northwind', metadata: { email: 'ada@example.com', plan: 'pro' } },
    });
    expect(companies).toEqual({ northwind: { metadata: { name: 'Northwind', seats: 12 } } });
    expect(events.map(({ id, type, name, company }) => ({ id, type, name, company }))).toEqual([
      { id: '1403', type: 'session_start', name: 'session_start', company: 'northwind' },
      { id: '1404', type: 'page_view', name: 'page_view', company: 'northwind' },
      { id: '1405', type: 'track', name: 'Invoice Paid', company: 'northwind' },
      { id: '1406', type: 'track_feature', name: '12', company: 'northwind' },
      { id: '1407', type: 'interaction', name: 'checklist:2:SEEN', company: 'northwind' },
    ]);
    expect(events[1]?.metadata).toEqual({
      hostname: 'app.example.com',
      pathname: '/billing',
      browser: 'Firefox',
      session: '2',
    });
    expect(load.tallyByKind).toMatchObject({
      track_feature: { read: 1, inserted: 1 },
      interaction: { read: 1, inserted: 1 },
    });
  });

  // proves: presets
  test.each(presets)(
    'an export file of %s that is loaded again in any chunks changes nothing',
    async (preset) => {
      await fc.assert(
        fc.asyncProperty(
          fc.record({
            chunkBytes: fc.integer({ min: 1, max: 2000 }),
            nextChunkBytes: fc.integer({ min: 1, max: 2000 }),
          }),
          fc.array(fc.nat()),
          async ({ chunkBytes, nextChunkBytes }, ranks) => {
            const environment = await newEnvironment(t.system);
            const file = await sampleOf(preset);
            const content = async () => ({
              ...(await readProfiles(t.system, environment)),
              events: await readEvents(t.system, environment),
            });
            const load = await startManually(t.system, environment, file, { preset, chunkBytes });
            const first = await runManually(load, shuffled(load.chunkCount, ranks));
            expect(first).toMatchObject({ status: 'completed' });
            const contentBefore = await content();
            const { tally } = await runManually(
              await startManually(t.system, environment, file, { preset, chunkBytes: nextChunkBytes }),
            );
            expect(tally).toMatchObject({ read: first.tally.read, inserted: 0 });
            expect(await content()).toEqual(contentBefore);
            expect(withoutIds(contentBefore)).toEqual(withoutIds(await contentOf(preset)));
          },
        ),
        { numRuns: runs(6) },
      );
    },
  );

  // proves: presets
  test('an export file counts each record once, in any order of chunks', async () => {
    const line = fc
      .record({
        event_type: fc.constantFrom('$identify', '$identify', '$groupidentify', 'A'),
        user_id: fc.constantFrom('u', 'v'),
        hour: fc.integer({ min: 10, max: 23 }),
        user_properties: fc.dictionary(fc.constantFrom('a', 'b'), fc.integer({ min: 0, max: 2 })),
        groups: fc.constantFrom({ company: 'c' }, { company: ['d'] }),
        size: fc.integer({ min: 0, max: 2 }),
      })
      .map(({ hour, size, ...event }) => ({
        ...event,
        event_time: `2026-03-04 ${hour}:00:00`,
        group_properties: { company: { c: { size }, d: { size } } },
      }));
    await fc.assert(
      fc.asyncProperty(
        fc.array(line, { minLength: 2, maxLength: 12 }),
        fc.array(fc.nat(), { maxLength: 12 }),
        async (lines, ranks) => {
          const file = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
          const environments = [await newEnvironment(t.system), await newEnvironment(t.system)] as const;
          const [loadInOneChunk, loadInChunks] = await Promise.all([
            startManually(t.system, environments[0], file, { preset: 'amplitude' }),
            startManually(t.system, environments[1], file, { preset: 'amplitude', chunkBytes: 1 }),
          ]);
          const ended = await runManually(loadInOneChunk);
          const endedInChunks = await runManually(loadInChunks, shuffled(loadInChunks.chunkCount, ranks));
          expect(endedInChunks).toMatchObject({ status: 'completed', tally: { read: lines.length } });
          // The order of the chunks determines whether a record is superseded or unchanged.
          expect(endedInChunks.tally.inserted).toBe(ended.tally.inserted);
          const profiles = environments.map((environment) => readProfiles(t.system, environment));
          const [profilesOfOne, profilesOfChunks] = await Promise.all(profiles);
          expect(profilesOfChunks).toEqual(profilesOfOne);
        },
      ),
      { numRuns: runs(25) },
    );
  });
});

describe('another form of an export', () => {
  const load = async (content: string | Uint8Array, options: object) => {
    const environment = await newEnvironment(t.system);
    const { status, tally } = await runManually(await startManually(t.system, environment, content, options));
    expect([status, tally.rejected]).toEqual(['completed', 0]);
    return {
      ...(await readProfiles(t.system, environment)),
      events: await readEvents(t.system, environment),
    };
  };

  // proves: presets
  test('a ZIP archive of Amplitude with a packed file for each hour is read by hour', async () => {
    const hour = (name: string, plan: string) => {
      const line = { event_type: '$identify', user_id: 'ada', user_properties: { plan } };
      return { name: `123456/123456_2026-03-04_${name}#0.json.gz`, data: gzipSync(JSON.stringify(line)) };
    };
    const file = zipFile([hour('10', 'pro'), hour('9', 'free'), hour('2', 'trial')]);
    expect((await load(file, { preset: 'amplitude' })).users).toEqual({
      ada: { company: null, metadata: { plan: 'pro' } },
    });
  });

  // proves: presets
  test('properties of PostHog as text in Parquet and CSV keep every digit', async () => {
    const properties =
      '{"n":12345678901234567890,"$groups":{"company":"c"},"$set_once":{"from":"x"},"list":[1.50]}';
    const row = { uuid: 'e1', event: 'A', distinct_id: 'ada', timestamp: '2026-03-04T05:06:07Z', properties };
    const columnData = Object.entries(row).map(([name, value]) => ({ name, data: [value] }));
    const csv = `${Object.keys(row).join()}\n${Object.values(row)
      .map((cell) => `"${cell.replaceAll('"', '""')}"`)
      .join()}\n`;
    for (const file of [new Uint8Array(parquetWriteBuffer({ columnData })), csv]) {
      const { events, users, companies } = await load(file, { preset: 'posthog' });
      expect({ users, companies }).toEqual({
        users: { ada: { company: 'c', metadata: { from: 'x' } } },
        companies: { c: { metadata: {} } },
      });
      expect(events).toMatchObject([{ id: 'e1', name: 'A', company: 'c' }]);
      const { rows } = await t.system.pool.query<{ text: string }>(
        "select metadata::text as text from events where event_id = 'e1' order by environment_id desc limit 1",
      );
      expect(rows[0]?.text).toBe('{"n": 12345678901234567890, "list": [1.50]}');
    }
  });

  // proves: presets
  test('the people of Mixpanel may be in a CSV', async () => {
    const csv =
      '$distinct_id,$email,plan,company_id,$last_seen\nada,a@example.com,pro,c,2026-03-04T05:06:07\n';
    expect(await load(csv, { preset: 'mixpanel' })).toEqual({
      users: { ada: { company: 'c', metadata: { email: 'a@example.com', plan: 'pro' } } },
      companies: { c: { metadata: {} } },
      events: [],
    });
  });

  // proves: presets
  test('the persons of PostHog become users', async () => {
    const results = [
      { distinct_ids: ['ada', 'anon'], properties: { plan: 'pro' }, created_at: '2026-03-04T05:06:07Z' },
    ];
    const { users } = await load(JSON.stringify({ next: null, results }), {
      preset: 'posthog',
      filename: 'persons.json',
    });
    expect(users).toEqual({ ada: { company: null, metadata: { plan: 'pro' } } });
  });
});

describe('the users of event files', () => {
  const day = (at: number) => new Date(Date.UTC(2026, 2, 1 + at)).toISOString();
  const writers: Readonly<Record<Preset, (user: string, at: string, company: string | null) => object>> = {
    mixpanel: (user, at, company) => ({
      event: 'A',
      properties: { distinct_id: user, time: Date.parse(at), ...(company && { company_id: [company, 'x'] }) },
    }),
    amplitude: (user, at, company) => ({
      event_type: 'A',
      user_id: user,
      event_time: at,
      groups: company ? { team: 'x', account: [company] } : {},
    }),
    segment: (user, at, company) => ({
      ...(company ? { type: 'group', groupId: company } : { type: 'track', event: 'A' }),
      userId: user,
      timestamp: at,
    }),
    userpilot: (user, at, company) => ({
      event_type: 'track',
      event_name: 'A',
      user_id: user,
      inserted_at: at,
      ...(company && { company_id: company }),
    }),
    posthog: (user, at, company) => ({
      event: 'A',
      distinct_id: user,
      timestamp: at,
      properties: JSON.stringify({ ...(company && { $groups: { company } }) }),
    }),
  };

  // proves: latest-company
  test.each(presets)(
    'users of %s get the company of their last event in any order of chunks',
    async (preset) => {
      const event = fc.record({
        user: fc.constantFrom('u', 'v'),
        company: fc.constantFrom(null, 'c', 'd'),
        file: fc.nat(1),
      });
      await fc.assert(
        fc.asyncProperty(
          fc.array(event, { minLength: 1, maxLength: 10 }),
          fc.array(fc.nat(), { maxLength: 10 }),
          fc.constantFrom(1, 200, 100_000),
          async (anyEvents, ranks, chunkBytes) => {
            const environment = await newEnvironment(t.system);
            const events = [0, 1].flatMap((file) => anyEvents.filter((each) => each.file === file));
            for (const file of [0, 1]) {
              const lines = events
                .filter((each) => each.file === file)
                .map(({ user, company }, at) => JSON.stringify(writers[preset](user, day(at), company)));
              if (lines.length === 0) continue;
              const options = { preset, chunkBytes };
              const load = await startManually(t.system, environment, `${lines.join('\n')}\n`, options);
              const { status, tally } = await runManually(load, shuffled(load.chunkCount, ranks));
              expect([status, tally.rejected]).toEqual(['completed', 0]);
            }
            const { users, companies } = await readProfiles(t.system, environment);
            const expectedUsers = [...new Set(events.map(({ user }) => user))].map((user) => {
              const withCompany = events.filter((each) => each.user === user && each.company !== null);
              return [user, { company: withCompany.at(-1)?.company ?? null, metadata: {} }] as const;
            });
            expect(users).toEqual(Object.fromEntries(expectedUsers));
            expect(Object.keys(companies).sort()).toEqual(
              [...new Set(events.flatMap(({ company }) => company ?? []))].sort(),
            );
          },
        ),
        { numRuns: runs(12) },
      );
    },
  );

  // proves: latest-company
  test('users get the company of the specified kind of group, without other kinds', async () => {
    const environment = await newEnvironment(t.system);
    const groups = { company: 'c', project: 'p' };
    const lines = [
      { event: 'A', distinct_id: 'u', timestamp: day(1), properties: { $groups: groups } },
      ...['company', 'project'].map((kind) => ({
        event: '$groupidentify',
        distinct_id: 'u',
        timestamp: day(1),
        properties: { $group_type: kind, $group_key: `of-${kind}`, $group_set: { size: 5 } },
      })),
    ];
    const file = lines.map((line) => JSON.stringify(line)).join('\n');
    const options = { preset: 'posthog', source: { companyFrom: 'project' } } as const;
    const { jobId, tally } = await runManually(await startManually(t.system, environment, file, options));
    expect(tally).toMatchObject({ read: 3, inserted: 2, rejected: 1 });
    expect(await readRejects(t.system, jobId)).toMatchObject([
      { row: 2, message: expect.stringContaining('company_from') },
    ]);
    expect(await readProfiles(t.system, environment)).toEqual({
      users: { u: { company: 'p', metadata: {} } },
      companies: { p: { metadata: {} }, 'of-project': { metadata: { size: 5 } } },
    });
  });
});

describe('a refused record of another product', () => {
  const good = { event: 'Paid', distinct_id: 'ada', timestamp: '2026-03-04T05:06:07Z', properties: { n: 1 } };
  const wrongTime = { ...good, timestamp: 'someday', properties: { $set: { plan: 'pro' } } };
  const alias = { ...good, event: '$create_alias', properties: { alias: 'old' } };
  const withoutId = { ...good, event: '$set', distinct_id: '', properties: { $set: { a: 1 } } };
  const load = async (text: string, filename: string) => {
    const environment = await newEnvironment(t.system);
    const started = await startManually(t.system, environment, text, { preset: 'posthog', filename });
    const { jobId, tally, totalRows } = await runManually(started);
    const rejects = await readRejects(t.system, jobId);
    return {
      counts: [totalRows, tally.read, tally.inserted, tally.rejected],
      rejects: rejects.map(({ row, line, code, raw }) => [row, line, code, Buffer.from(raw).toString()]),
      ...(await readProfiles(t.system, environment)),
    };
  };
  const rewritten = {
    event_type: 'track',
    event_name: 'Paid',
    user_id: 'ada',
    inserted_at: 'someday',
    metadata: {},
    sluice_profiles: [{ event_type: 'identify_user', user_id: 'ada', metadata: { plan: 'pro' } }],
  };

  // proves: presets
  test('a refused record of NDJSON has its place, and its text or its rewritten form', async () => {
    const lines = [good, '', alias, '{"event":', wrongTime, '[1]', withoutId, good];
    const texts = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line)));
    const { counts, rejects, users } = await load(texts.join('\n'), 'f.ndjson');
    expect(counts).toEqual([7, 7, 2, 5]);
    expect(rejects).toEqual([
      [2, 3, 'unsupported_kind', texts[2]],
      [3, 4, 'invalid_json', texts[3]],
      [4, 5, 'invalid_date', JSON.stringify(rewritten)],
      [5, 6, 'not_an_object', texts[5]],
      [6, 7, 'missing_id', '{"event_type":"identify_user","metadata":{"a":1}}'],
    ]);
    expect(users).toEqual({ ada: adaAlone });
  });

  // proves: presets
  test('a refused record of CSV has its place, and its text or its rewritten form', async () => {
    const cells = (line: object) =>
      Object.values(line)
        .map((cell) => (typeof cell === 'object' ? JSON.stringify(cell, null, 1) : String(cell)))
        .map((cell) => `"${cell.replaceAll('"', '""')}"`)
        .join();
    const records = [good, alias, wrongTime, good].map(cells);
    const file = [
      'event,distinct_id,timestamp,properties',
      ...records.slice(0, 2),
      'a,b',
      ...records.slice(2),
    ];
    const { counts, rejects } = await load(file.join('\n'), 'f.csv');
    expect(counts).toEqual([5, 5, 2, 3]);
    const lineOf = (at: number) => file.slice(0, at).join('\n').split('\n').length + 1;
    expect(rejects).toEqual([
      [2, lineOf(2), 'unsupported_kind', records[1]],
      [3, lineOf(3), 'wrong_field_count', 'a,b'],
      [4, lineOf(4), 'invalid_date', JSON.stringify(rewritten)],
    ]);
  });

  // proves: presets
  test('a refused record is loaded by its mend, rewritten or not', async () => {
    const mendedRecords = [
      { ...rewritten, inserted_at: '2026-03-05T05:06:07Z', sluice_row: 4 },
      { ...alias, event: 'Paid', sluice_row: 2 },
    ];
    const { counts, users } = await load(
      mendedRecords.map((record) => JSON.stringify(record)).join('\n'),
      'f.ndjson',
    );
    expect(counts).toEqual([2, 2, 2, 0]);
    expect(users).toEqual({ ada: { company: null, metadata: { plan: 'pro' } } });
  });

  const adaAlone = { company: null, metadata: {} };
});

interface Content extends Profiles {
  readonly events: readonly StoredEvent[];
}

/**
 * Returns the content without the ids of events, because some of these ids depend on the
 * environment.
 */
const withoutIds = ({ events, ...profiles }: Content) => ({
  ...profiles,
  events: events.map(({ id: _, ...event }) => event),
});

/** Returns the loaded content of a preset's sample. Loads each sample only once. */
const contents = new Map<Preset, Promise<Content>>();
function contentOf(preset: Preset): Promise<Content> {
  const content = contents.get(preset) ?? loadSample(preset).then(({ load: _, ...content }) => content);
  contents.set(preset, content);
  return content;
}

function shuffled(count: number, ranks: readonly number[]): number[] {
  const rank = (index: number) => ranks[index] ?? 0;
  return Array.from({ length: count }, (_, index) => index).sort((a, b) => rank(a) - rank(b) || a - b);
}
