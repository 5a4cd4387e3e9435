import { describe, expect, test } from 'vitest';
import { explainProblem } from '../../../src/base/errors.ts';
import { OptionTable } from '../../../src/domain/option-table.ts';
import type { Preset } from '../../../src/domain/source.ts';
import { inspectText as inspect } from './support/inspect-text.ts';

const at = '2026-03-04T05:06:07Z';
type Members = Readonly<Record<string, unknown>>;

/**
 * For each product, two records as that product exports them, and the map that a person without a
 * preset would write.
 */
const products: readonly (readonly [
  string,
  readonly [Members, Members],
  Readonly<Record<string, string>>,
])[] = [
  [
    'Segment',
    [
      { type: 'track', event: 'Paid', userId: 'ada', messageId: 'm1', timestamp: at, properties: { n: 1 } },
      { type: 'page', name: 'Home', userId: 'eve', messageId: 'm2', originalTimestamp: at, properties: {} },
    ],
    { event: 'event_name', userId: 'user_id', timestamp: 'inserted_at' },
  ],
  [
    'PostHog',
    [
      { uuid: 'p1', event: 'paid', distinct_id: 'ada', timestamp: at, properties: { n: 1 } },
      { uuid: 'p2', event: '$pageview', distinct_id: 'eve', timestamp: at, properties: {} },
    ],
    { event: 'event_name', distinct_id: 'user_id', timestamp: 'inserted_at' },
  ],
  [
    'Amplitude',
    [
      { event_type: 'Paid', user_id: 'ada', event_time: at, uuid: 'a1', event_properties: { n: 1 } },
      { event_type: 'Left', user_id: 'eve', event_time: at, uuid: 'a2', event_properties: {} },
    ],
    { event_type: 'event_name', event_time: 'inserted_at' },
  ],
  [
    'Mixpanel',
    [
      { event: 'Paid', properties: { time: 1772600767, distinct_id: 'ada', $insert_id: 'x1' } },
      { event: 'Left', properties: { time: 1772600768, distinct_id: 'eve', $insert_id: 'x2' } },
    ],
    { event: 'event_name', 'properties.time': 'inserted_at', 'properties.distinct_id': 'user_id' },
  ],
  [
    'Userpilot',
    [
      {
        app_token: 'NX-1',
        event_type: 'track',
        event_name: 'Paid',
        user_id: 'ada',
        company_id: 'acme',
        source: 'web-client',
        inserted_at: at,
        browser: 'Firefox',
        session: '1',
        metadata: { n: 1 },
      },
      {
        app_token: 'NX-1',
        event_type: 'session_start',
        event_name: '',
        user_id: 'eve',
        company_id: '',
        source: 'web-client',
        inserted_at: at,
        browser: 'Firefox',
        session: '2',
        metadata: {},
      },
    ],
    {},
  ],
  [
    'a tracker of one’s own',
    [
      { id: 1, 'Event Name': 'paid', createdAt: at, customerId: 'ada' },
      { id: 2, 'Event Name': 'left', createdAt: at, customerId: 'eve' },
    ],
    { 'Event Name': 'event_name', createdAt: 'inserted_at', customerId: 'user_id' },
  ],
  [
    'a queue that wraps each event',
    [
      { id: 1, payload: { event: 'paid', timestamp: at, user: 'ada' } },
      { id: 2, payload: { event: 'left', timestamp: at, user: 'eve' } },
    ],
    { 'payload.event': 'event_name', 'payload.timestamp': 'inserted_at', 'payload.user': 'user_id' },
  ],
];

const kinds = ['CSV', 'NDJSON', 'JSON'] as const;
const files = products.flatMap(([name, ...file]) => kinds.map((kind) => [name, kind, ...file] as const));

function write(records: readonly Members[], kind: (typeof kinds)[number]): string {
  if (kind === 'JSON') return JSON.stringify({ next: null, results: records });
  if (kind === 'NDJSON') return records.map((record) => `${JSON.stringify(record)}\n`).join('');
  const flat = records.map((record) => Object.fromEntries(flatten(record)));
  const columns = [...new Set(flat.flatMap((record) => Object.keys(record)))];
  const lines = flat.map((record) => columns.map((name) => quote(record[name])).join(','));
  return [columns.map(quote).join(','), ...lines, ''].join('\n');
}

function flatten(record: Members, within = ''): [string, unknown][] {
  return Object.entries(record).flatMap(([name, value]) =>
    typeof value === 'object' && value !== null
      ? flatten(value as Members, `${within}${name}.`)
      : [[within + name, value] as [string, unknown]],
  );
}

function quote(value: unknown): string {
  return `"${String(value ?? '').replaceAll('"', '""')}"`;
}

describe('a file of another product', () => {
  // proves: foreign-files
  test.each(files)(
    'events of %s as %s get no proposed id, and load as events with the advice',
    async (_, kind, records, names) => {
      const text = write(records, kind);
      const inspection = await inspect(text);
      expect(inspection.map).toEqual({});
      expect(inspection.rows.map((row) => row.event_type)).not.toContain('identify_user');
      expect(inspection.problem?.problems[0].code).toBe('unrecognised_columns');
      const advice = inspection.problem?.problems[0].message ?? '';
      const preset = /load it with preset=(\w+)/.exec(advice)?.[1] as Preset | undefined;
      expect(inspection.preset).toBe(preset ?? null);
      if (preset === undefined) expect(advice).toMatch(/add a (column|key) event_type that says track/);
      const withKind = records.map((record) => ({ kind: 'track', ...record }));
      // A map can name only top-level members of a record.
      const flat = kind === 'CSV' ? withKind : withKind.map((record) => Object.fromEntries(flatten(record)));
      const advised = await (preset === undefined
        ? inspect(write(flat, kind), { map: { kind: 'event_type', ...names } })
        : inspect(text, { preset }));
      expect(advised.problem).toBeNull();
      expect(advised.rows).toHaveLength(records.length);
      for (const row of advised.rows) expect(row.event_type).toMatch(/^(track|page_view|session_start)$/);
      if (preset !== undefined) expect(inspection.rows).toEqual(advised.rows);
    },
  );

  // proves: foreign-files
  test.each(files)(
    'a file of %s as %s gets no proposed id, even if its records are declared users',
    async (_, kind, records) => {
      const { map } = await inspect(write(records, kind), { entity: 'users' });
      expect(map).toEqual({});
    },
  );

  test('the advice for columns of events has the --map of a command line for them', async () => {
    const row = { event_id: 'e1', user_id: 'ada', event: 'paid', timestamp: at };
    for (const kind of kinds) {
      const { problem } = await inspect(write([row, row], kind));
      const [first] = problem?.problems ?? [];
      expect(first && explainProblem(first, new OptionTable([]).flags)).toContain(
        'or rename them with --map "event=event_name" and --map "timestamp=inserted_at"; if',
      );
    }
  });

  // proves: presets
  test.each([
    ['NDJSON, with its metadata as a text', (row: Members) => `${JSON.stringify(row)}\n`],
    ['CSV', (row: Members) => `${Object.keys(row).join()}\n${Object.values(row).map(quote).join()}\n`],
  ])('browser columns of Userpilot as %s are not properties of a user', async (_, text) => {
    const shared = { app_token: 'NX-1', event_name: '', user_id: 'ada', company_id: '', browser: 'Firefox' };
    const row = { ...shared, event_type: 'identify_user', inserted_at: at, metadata: '{"plan":"pro"}' };
    const { rows } = await inspect(text(row), { preset: 'userpilot' });
    expect(rows).toMatchObject([{ event_type: 'identify_user', metadata: { plan: 'pro' } }]);
    expect(Object.keys(rows[0]?.metadata ?? {})).toEqual(['plan']);
    expect(rows[0]).not.toHaveProperty('company_id');
  });

  // proves: presets
  test.each(kinds)('user and company lists of Userpilot as %s become profiles', async (kind) => {
    const seenTimes = { first_seen_at: '2025-01-02T03:04:05Z', last_seen_at: at };
    const user = {
      app_token: 'NX-1',
      user_id: 'ada',
      company_id: 'acme',
      browser: 'Firefox',
      ...seenTimes,
      plan: 'pro',
    };
    const company = { app_token: 'NX-1', company_id: 'acme', ...seenTimes, metadata: { seats: 12 } };
    for (const [record, shownRow] of [
      [user, { event_type: 'identify_user', metadata: { plan: 'pro' } }],
      [company, { event_type: 'identify_company', metadata: { seats: kind === 'CSV' ? '12' : 12 } }],
    ] as const) {
      const text = write([record, record], kind);
      expect(await inspect(text)).toMatchObject({ preset: 'userpilot', map: {} });
      const { problem, rows } = await inspect(text, { preset: 'userpilot' });
      expect({ problem, rows }).toMatchObject({ problem: null, rows: [shownRow, shownRow] });
      expect(rows[0]?.metadata).toEqual(shownRow.metadata);
      expect(rows[0]).toMatchObject({ company_id: 'acme' });
    }
  });

  // proves: presets
  test.each([
    ['NDJSON', '{"event_type":"page_view","event_name":"","user_id":"ada"}\n'],
    ['CSV', 'event_type,event_name,user_id\npage_view,"",ada\n'],
  ])('an empty name of a page view in our format as %s counts as absent', async (_, text) => {
    const { rows } = await inspect(text);
    expect(rows).toMatchObject([{ event_type: 'page_view', event_name: 'page_view' }]);
  });

  test.each([
    ['users of ours', '{"userId":"ada","type":"admin","name":"Ada"}\n', { userId: 'user_id' }],
    ['events of ours in CSV', 'event_type,event_name,uid\ntrack,x,ada\n', { uid: 'user_id' }],
  ])('%s are not taken for another product, and the id is proposed', async (_, text, map) => {
    const inspection = await inspect(text);
    expect(inspection).toMatchObject({ map, preset: null });
    expect(inspection.rows).toHaveLength(1);
  });

  test.each([
    [
      'a user with properties of such names',
      '{"user_id":"ada","metadata":{"event":"x","created_at":"2026-01-01"}}\n',
    ],
    ['a CSV of users that we exported', 'user_id,company_id,first_seen_at,last_seen_at,event\nada,,,,x\n'],
    ['a CSV of profiles that says so', 'event_type,user_id,signed_up_at\nidentify_user,ada,2026-01-01\n'],
    ['a CSV of events of ours with a column time', 'event_type,user_id,time\npage_view,ada,2026-01-01\n'],
    ['an event of ours', '{"event_type":"track","event_name":"x","user_id":"ada","time":1}\n'],
  ])('%s is not taken for another product', async (_, text) => {
    const inspection = await inspect(text);
    expect(inspection).toMatchObject({ problem: null, preset: null });
    expect(inspection.rows).toHaveLength(1);
  });
});

const paid = { uuid: 'p1', event: 'paid', distinct_id: 'ada', timestamp: at, properties: { n: 1 } };
const posthog = 'This is an export of PostHog: load it with preset=posthog';

describe('an export of another product', () => {
  // proves: foreign-files
  test.each([
    ['PostHog', { ...paid, properties: { time: 1772600767, distinct_id: 'ada', token: 'x' } }, 'posthog'],
    [
      'Segment',
      { type: 'track', event: 'Paid', userId: 'ada', timestamp: at, properties: { distinct_id: 'x' } },
      'segment',
    ],
    [
      'Mixpanel',
      { event: 'Paid', properties: { time: 1772600767, distinct_id: 'ada', timestamp: at, type: 'track' } },
      'mixpanel',
    ],
  ])('an export of %s is recognised despite misleading properties', async (_, record, preset) => {
    for (const kind of kinds) expect(await inspect(write([record, record], kind))).toMatchObject({ preset });
  });

  // proves: foreign-files
  test('an export is recognised by its second record if the first is too large', async () => {
    const large = { ...paid, properties: { text: 'x'.repeat(70_000) } };
    const inspection = await inspect(write([large, paid], 'NDJSON'));
    expect(inspection).toMatchObject({ map: {}, preset: 'posthog' });
    expect(inspection.problem?.problems[0].message).toBe(posthog);
  });

  // proves: foreign-files
  test.each(kinds)('an export as %s is not read by the preset of another product', async (kind) => {
    const inspection = await inspect(write([paid, paid], kind), { preset: 'mixpanel' });
    expect(inspection.problem?.problems[0].message).toBe(posthog);
    expect(inspection).toMatchObject({ preset: 'posthog', rejects: { count: 0 } });
    expect(inspection.rows[0]).toMatchObject({
      event_id: 'p1',
      inserted_at: '2026-03-04T05:06:07.000000Z',
    });
  });

  test('an export of our users may have a property event, in JSON and in CSV', async () => {
    const user = { user_id: 'ada', first_seen_at: at, last_seen_at: at, event: 'x' };
    for (const kind of kinds)
      expect(await inspect(write([user, user], kind))).toMatchObject({ problem: null, preset: null });
  });

  // proves: presets
  test.each([
    ['in separate columns', `${Object.keys(paid).join()},properties.$browser`, ',Firefox'],
    ['in one column', Object.keys(paid).join(), ''],
  ])('a CSV export keeps properties %s', async (_, header, moreCells) => {
    const text = `${header}\np1,paid,ada,${at},"{""a"":1}"${moreCells}\n`;
    const { rows } = await inspect(text, { preset: 'posthog' });
    expect(rows[0]?.metadata).toEqual({ a: 1, ...(moreCells && { $browser: 'Firefox' }) });
  });

  // proves: presets
  test.each([
    [
      'amplitude',
      {
        event_type: 'P',
        user_id: 'ada',
        event_time: at,
        groups: '{"company":["c"]}',
        event_properties: '{"a":1}',
      },
    ],
    [
      'segment',
      {
        type: 'track',
        event: 'P',
        userId: 'ada',
        timestamp: at,
        properties: '{"a":1}',
        context: '{"groupId":"c"}',
      },
    ],
    [
      'mixpanel',
      { event: 'P', properties: '{"a":1,"distinct_id":"ada","time":1772600767,"company_id":"c"}' },
    ],
  ] as const)('an export of %s may have its objects as text', async (preset, record) => {
    const { rows } = await inspect(write([record], 'NDJSON'), { preset });
    expect(rows[0]).toMatchObject({ user_id: 'ada', company_id: 'c', metadata: { a: 1 } });
  });
});
