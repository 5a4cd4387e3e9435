import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { packageRoot } from '../../../src/base/package-root.ts';
import type {
  SegmentPage as Page,
  Property,
  EventPropertyPage as PropertyPage,
} from '../../../src/lookups/api.ts';
import { runs } from '../../support/runs.ts';
import { apply, itemsOf, segmentItem } from '../../support/servers/definitions.ts';
import { type ErrorBody, openServer, refusalOf } from '../../support/servers/http.ts';
import type { Tenant } from '../../support/servers/system.ts';
import { waitFor } from '../../support/wait-for.ts';

const root = '/api/v1/analytics/exports/lookups';
/** The lookups in the documented interface, and further lookups that newer clients request. */
const arrays = [
  'surveys',
  'embeds',
  'user_properties',
  'company_properties',
  'flows',
  'banners',
  'spotlights',
  'resource_center_modules',
  'features_events',
  'checklists',
] as const;
const lookups = ['segments', 'events_properties', ...arrays] as const;

const sample = itemsOf(readFileSync(join(packageRoot, 'docs', 'samples', 'definitions.yaml')));

const { t, server } = await openServer({ worker: true });
const full = await t.addEnvironment('full');
const empty = await t.addEnvironment('empty');
await apply(t, full, sample);

const get = async <T>(name: string, { key }: Tenant, options: object = {}): Promise<T> => {
  const { status, body } = await server.json<T>(`${root}/${name}`, { key, ...options });
  expect(status).toBe(200);
  return body;
};

async function post(path: string, body: object, { key }: Tenant): Promise<void> {
  const options = { key, json: body };
  expect((await server.fetch(path, options)).status).toBe(202);
}

describe('definitions of the operator', () => {
  test('the lookup segments has the envelope of the interface', async () => {
    const { data, metadata } = await get<Page>('segments', full);
    expect(data).toHaveLength(sample.segments.length);
    expect(data[1]).toEqual({
      id: expect.any(Number),
      title: 'Power users',
      usage: 'analytics',
      category: 'Engagement',
      is_hidden: false,
      is_protected: true,
      status: 'active',
    });
    expect(data.map(({ title }) => title)).toEqual(sample.segments.map(({ title }) => title));
    expect(metadata).toEqual({
      cursor: { after: '', before: null },
      limit: 50,
      total_count: sample.segments.length,
    });
  });

  test('the lookup surveys has the modules of each survey in order', async () => {
    const [nps, onboarding] = await get<object[]>('surveys', full);
    expect(nps).toEqual({
      id: expect.any(Number),
      title: 'Quarterly NPS',
      platform: 'web',
      modules: (sample.surveys[0]?.modules ?? []).map(({ type, question }, index) => ({
        id: expect.any(Number),
        order: index + 1,
        type,
        question,
      })),
    });
    expect(onboarding).toMatchObject({ platform: 'mobile', modules: [{ order: 1 }, { order: 2 }] });
  });

  test('the lookups flows, banners and spotlights are embeds, with the type that the operator wrote', async () => {
    for (const kind of ['flows', 'banners', 'spotlights'] as const) {
      const items = sample[kind].map(({ title, type }) => ({ id: expect.any(Number), title, type }));
      expect(items.length).toBeGreaterThan(0);
      expect(await get(kind, full)).toEqual(items);
    }
    expect(await get('spotlights', full)).toMatchObject([{ type: 'tooltip' }, { type: 'hotspot' }]);
    expect(await get('banners', full)).toMatchObject([{ type: 'banner' }, { type: 'modal' }]);
  });

  test('the lookups resource_center_modules and checklists have keys and names', async () => {
    expect(await get('resource_center_modules', full)).toEqual([
      { display_name: 'Contact support', key: 'contact-support', data_type: 'string' },
      { display_name: 'Getting started', key: 'getting-started', data_type: 'string' },
      { display_name: "What's new", key: 'whats-new', data_type: 'string' },
    ]);
    expect(await get('checklists', full)).toEqual([
      { display_name: 'Make your first report', key: 'first-report', data_type: 'string' },
      { display_name: 'Invite your team', key: 'invite-team', data_type: 'string' },
    ]);
  });
});

describe('lookups from data', () => {
  const keysOf = async (name: string, tenant: Tenant) =>
    (await get<Property[]>(name, tenant)).map(({ key, data_type }) => `${key} ${data_type}`);

  test('properties of users and companies from every route are listed', async () => {
    const tenant = await t.addEnvironment('properties');
    await post(
      '/v1/identify',
      { user_id: 'u', metadata: { signedUpAt: '2026-11-20' }, company: { company_id: 'c', seats: 5 } },
      tenant,
    );
    await post('/v1/companies/identify', { company_id: 'c', metadata: { is_paying: true } }, tenant);
    expect(await keysOf('user_properties', tenant)).toEqual([
      'first_seen_at date',
      'last_seen_at date',
      'signedUpAt date',
    ]);
    expect(await keysOf('company_properties', tenant)).toEqual([
      'first_seen_at date',
      'is_paying boolean',
      'last_seen_at date',
      'seats numeric',
    ]);
    const users = await get<Property[]>('user_properties', tenant);
    expect(users.at(-1)).toEqual({
      id: expect.any(Number),
      type: 'user_property',
      key: 'signedUpAt',
      display_name: 'Signed Up At',
      data_type: 'date',
      is_auto_property: false,
    });
    expect(users.map(({ is_auto_property }) => is_auto_property)).toEqual([true, true, false]);
    const [first] = await get<Property[]>('company_properties', tenant);
    expect(first).toMatchObject({
      type: 'company_property',
      display_name: 'First Seen At',
      is_auto_property: true,
    });
  });

  test('properties of events from every route are listed, with a type that fits all values', async () => {
    const tenant = await t.addEnvironment('event-properties');
    const properties = async () =>
      (await get<PropertyPage>('events_properties', tenant)).data.map(
        ({ key, data_type }) => `${key} ${data_type}`,
      );
    expect(await properties()).toEqual([]);
    const event = { user_id: 'u', event_name: 'Order Completed' };
    await post('/v1/track', { ...event, metadata: { total: 9.5, paidAt: '2026-11-20', none: null } }, tenant);
    await post('/v1/track', { ...event, total: '1', coupon: true, items: [1] }, tenant);
    const batch = {
      key: tenant.key,
      json: { batch: [{ type: 'track', ...event, metadata: { size: 7, coupon: false } }] },
    };
    expect((await server.json('/v1/batch', batch)).body).toMatchObject({ accepted: 1 });
    const line = { event_type: 'track', ...event, metadata: { channel: 'web', size: 8 } };
    const file = {
      method: 'POST',
      key: tenant.key,
      body: `${JSON.stringify(line)}\n`,
      headers: { 'content-type': 'application/x-ndjson' },
    };
    expect((await server.fetch('/v1/imports', file)).status).toBe(200);
    await waitFor('the file to be loaded', async () => (await properties()).includes('channel string'));
    expect(await properties()).toEqual([
      'channel string',
      'coupon boolean',
      'items string',
      'paidAt date',
      'size numeric',
      'total string',
    ]);
    expect((await get<PropertyPage>('events_properties', tenant)).data[3]).toEqual({
      id: expect.any(Number),
      type: 'event_property',
      key: 'paidAt',
      display_name: 'Paid At',
      data_type: 'date',
      is_auto_property: false,
    });
    expect(await keysOf('user_properties', tenant)).toEqual(['first_seen_at date', 'last_seen_at date']);
  });

  test('the lookup events_properties is paged in both directions, in the envelope of segments', async () => {
    const tenant = await t.addEnvironment('event-property-pages');
    const keys = Array.from({ length: 7 }, (_, at) => `p${at}`);
    const metadata = Object.fromEntries(keys.map((key) => [key, 1]));
    await post('/v1/track', { user_id: 'u', event_name: 'e', metadata }, tenant);
    const page = (query: string) => get<PropertyPage>(`events_properties?limit=3${query}`, tenant);
    const first = await page('');
    const names = ({ data }: PropertyPage) => data.map(({ key }) => key);
    expect(first.metadata).toMatchObject({ limit: 3, total_count: 7, cursor: { before: null } });
    const second = await page(`&after_cursor=${first.metadata.cursor.after}`);
    const third = await page(`&after_cursor=${second.metadata.cursor.after}`);
    expect([first, second, third].flatMap(names)).toEqual(keys);
    expect(third.metadata.cursor.after).toBe('');
    expect(await page(`&before_cursor=${third.metadata.cursor.before}`)).toEqual(second);
    expect(await page(`&before_cursor=${second.metadata.cursor.before}`)).toEqual(first);
    const wrong = [`after_cursor=x`, `after_cursor=${'cA'.repeat(9)}`];
    for (const query of wrong) {
      expect(await refusalOf(server, `${root}/events_properties?${query}`)).toEqual([
        400,
        ['invalid_cursor'],
      ]);
    }
  });

  test('the lookup features_events has every tracked event, and features, which name events of the same key', async () => {
    const tenant = await t.addEnvironment('events');
    for (const event_name of ['report_exported', 'Signed Up', 'zebra_seen']) {
      await post('/v1/track', { user_id: 'u', event_name }, tenant);
    }
    expect(await get('features_events', tenant)).toEqual([
      { display_name: 'Signed Up', key: 'Signed Up', data_type: 'event' },
      { display_name: 'Report Exported', key: 'report_exported', data_type: 'event' },
      { display_name: 'Zebra Seen', key: 'zebra_seen', data_type: 'event' },
    ]);
    await apply(t, tenant, sample);
    expect(await get('features_events', tenant)).toEqual([
      { display_name: 'Signed Up', key: 'Signed Up', data_type: 'event' },
      { display_name: 'API access', key: 'api-access', data_type: 'beta_feature' },
      { display_name: 'Report export', key: 'report_exported', data_type: 'feature' },
      { display_name: 'Scheduled reports', key: 'scheduled-reports', data_type: 'feature' },
      { display_name: 'Zebra Seen', key: 'zebra_seen', data_type: 'event' },
    ]);
  });
});

describe('every lookup', () => {
  // proves: environments-apart
  test.each(lookups)('the lookup %s of an environment has nothing of another', async (name) => {
    const body = await get<Page | Property[]>(name, empty);
    if ('metadata' in body) {
      expect(body).toEqual({
        data: [],
        metadata: { cursor: { after: '', before: null }, limit: 50, total_count: 0 },
      });
    } else expect(body.filter((item) => item.is_auto_property !== true)).toEqual([]);
  });
});

describe('the pages of segments', () => {
  const count = 450;
  let many: Tenant;
  let ids: number[];
  const page = (query: Readonly<Record<string, string>>) =>
    get<Page>(`segments?${new URLSearchParams(query)}`, many);
  const refused = async (query: string) => {
    const { status, body } = await server.json<ErrorBody>(`${root}/segments?${query}`, { key: many.key });
    return [status, ...body.errors.map(({ error_code, details }) => `${error_code} ${details}`)];
  };

  beforeAll(async () => {
    many = await t.addEnvironment('many');
    // Segments of two environments are created alternately, so each environment has gaps between
    // its ids.
    const segments = Array.from({ length: count }, (_, at) => segmentItem(`s${at}`));
    await apply(t, many, { segments: segments.slice(0, 200) });
    await apply(t, await t.addEnvironment('beside'), { segments });
    await apply(t, many, { segments });
    const { rows } = await t.system.pool.query<{ id: number }>(
      'select segment_id as id from sluice.segments where environment_id = $1 order by segment_id',
      [many.environment.environmentId],
    );
    ids = rows.map(({ id }) => id);
  });

  test('a page of segments has 50 items by default, and 200 at most', async () => {
    expect((await page({})).data.map(({ id }) => id)).toEqual(ids.slice(0, 50));
    const { data, metadata } = await page({ limit: '200' });
    expect([data.length, metadata.limit, metadata.total_count]).toEqual([200, 200, count]);
  });

  test('pages of segments lead through all segments once, forward and back, by any limit', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 5, max: 200 }).map(String), async (limit) => {
        const pages = [await page({ limit })];
        let after = pages[0]?.metadata.cursor.after;
        while (after) {
          const next = await page({ limit, after_cursor: after });
          pages.push(next);
          after = next.metadata.cursor.after;
        }
        expect(pages.flatMap(({ data }) => data.map(({ id }) => id))).toEqual(ids);
        expect(pages).toHaveLength(Math.ceil(count / Number(limit)));
        expect(pages[0]?.metadata.cursor.before).toBeNull();
        const [, ...later] = pages.toReversed();
        let before = pages.at(-1)?.metadata.cursor.before;
        for (const expected of later) {
          const back = await page({ limit, before_cursor: before ?? '' });
          expect(back).toEqual(expected);
          before = back.metadata.cursor.before;
        }
        expect(before ?? null).toBeNull();
      }),
      { numRuns: runs(12), examples: [['200'], ['150'], ['9']] },
    );
  });

  const encode = (text: string): string => Buffer.from(text).toString('base64url');
  test.each([
    ['limit=0', ['invalid_field limit']],
    ['limit=5&limit=6', ['invalid_field limit']],
    ['after_cursor=nonsense', ['invalid_cursor after_cursor']],
    ['before_cursor=-1', ['invalid_cursor before_cursor']],
    [`after_cursor=${encode("segment:1' or true")}`, ['invalid_cursor after_cursor']],
    [
      `limit=-3&after_cursor=${encode('x')}&before_cursor=%00`,
      ['invalid_field limit', 'invalid_cursor after_cursor', 'invalid_cursor before_cursor'],
    ],
    [
      `after_cursor=${encode('segment:5')}&before_cursor=${encode('segment:9')}`,
      ['invalid_field before_cursor'],
    ],
  ])('a page of segments with %s is 400, with every fault', async (query, problems) => {
    expect(await refused(query)).toEqual([400, ...problems]);
  });
});
