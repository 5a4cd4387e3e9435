import type { Static } from 'typebox';
import { describe, expect, test } from 'vitest';
import type { eventPageAnswer } from '../../../src/profiles/api.ts';
import { openServer, refusalOf, walkPages } from '../../support/servers/http.ts';
import type { Tenant } from '../../support/servers/system.ts';

type Page = Static<typeof eventPageAnswer.schema>;

const { t, server } = await openServer();
const other = await t.addEnvironment('other');

async function store(
  user: string,
  events: readonly {
    readonly id: string;
    readonly at: string;
    readonly name?: string;
    readonly metadata?: string;
  }[],
  { environment }: Tenant = t,
): Promise<void> {
  const list = JSON.stringify(
    events.map(({ name = 'opened', metadata = '{}', ...event }) => ({ ...event, name, metadata })),
  );
  await t.system.pool.query(
    'select sluice.ensure_events_partition(at) from json_to_recordset($1::json) as e (at timestamptz)',
    [list],
  );
  await t.system.pool.query(
    `insert into events (environment_id, event_id, event_name, user_id, source, inserted_at, metadata)
    select $1, id, name, $2, 'backend-http', at, metadata::jsonb
    from json_to_recordset($3::json) as e (id text, name text, at timestamptz, metadata text)`,
    [environment.environmentId, user, list],
  );
}

const list = async (user: string, query = '', tenant: Tenant = t): Promise<Page> => {
  const { status, body } = await server.json<Page>(`/v1/users/${user}/events?${query}`, { key: tenant.key });
  expect(status).toBe(200);
  return body;
};
const idsOf = async (user: string, query = '') =>
  (await list(user, query)).data.map(({ event_id }) => event_id);

async function walk(user: string, query: string, between?: () => Promise<void>): Promise<string[]> {
  const events = await walkPages((cursor) => list(user, `${query}&cursor=${cursor}`), between);
  return events.map(({ event_id }) => event_id);
}

const refusal = (path: string, options: object = {}) => refusalOf(server, path, options);

describe('events of a user', () => {
  // proves: every-digit
  test('events of a user are answered as in exports, with every digit and microsecond', async () => {
    const track = {
      user_id: 'one',
      event_name: 'report_shared',
      event_id: 'e1',
      company_id: 'acme',
      metadata: { pages: 12 },
    };
    const sent = await server.fetch('/v1/track', { json: track });
    expect(sent.status).toBe(202);
    await store('one', [
      { id: 'e0', at: '2024-02-29T23:59:59.123456Z', metadata: '{"n": 12345678901234567890}' },
    ]);
    const response = await server.fetch('/v1/users/one/events');
    const text = await response.text();
    expect(text).toContain('12345678901234567890');
    expect(JSON.parse(text)).toEqual({
      data: [
        {
          event_id: 'e1',
          event_type: 'track',
          event_name: 'report_shared',
          user_id: 'one',
          company_id: 'acme',
          source: 'backend-http',
          inserted_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
          metadata: { pages: 12 },
        },
        expect.objectContaining({
          event_id: 'e0',
          company_id: null,
          inserted_at: '2024-02-29T23:59:59.123456Z',
        }),
      ],
      metadata: { cursor: { after: null, before: null }, events_kept_from: null, limit: 50 },
    });
  });

  test('events of a user are newest first, each once, for any limit, over months and at the same instant', async () => {
    const events = Array.from({ length: 47 }, (_, n) => ({
      id: `e${String((n * 29) % 47).padStart(2, '0')}`,
      // Four or five events share each instant. The instants are in different months, except for
      // two that are an hour apart.
      at: new Date(Date.UTC(2025, (n % 10) - (n % 10 === 3 ? 1 : 0), 7, n % 2)).toISOString(),
    }));
    await store('many', events);
    const sorted = [...events]
      .sort((a, b) => {
        if (a.at !== b.at) return a.at < b.at ? 1 : -1;
        return a.id < b.id ? 1 : -1;
      })
      .map(({ id }) => id);
    for (const limit of [1, 2, 7, 46, 47, 48, 500])
      expect(await walk('many', `limit=${limit}`)).toEqual(sorted);
  });

  // proves: paging
  test('a walk through the pages has each event once, and none of the events that arrive meanwhile twice', async () => {
    const day = (n: number) => new Date(Date.UTC(2025, 3, 1 + n)).toISOString();
    const events = Array.from({ length: 40 }, (_, n) => ({ id: `e${n}`, at: day(n) }));
    await store('walked', events);
    let round = 0;
    const met = await walk('walked', 'limit=6', async () => {
      round++;
      await store('walked', [
        { id: `new${round}`, at: day(60 + round) },
        { id: `late${round}`, at: day(round) },
      ]);
    });
    expect(round).toBeGreaterThan(4);
    expect(new Set(met).size).toBe(met.length);
    expect(met.filter((id) => id.startsWith('e'))).toEqual(events.map(({ id }) => id).reverse());
    expect(met.some((id) => id.startsWith('new'))).toBe(false);
  });

  test('`from` and `to` take days, which are included, and instants, with `to` excluded', async () => {
    await store('ranged', [
      { id: 'a', at: '2025-06-01T00:00:00Z' },
      { id: 'b', at: '2025-06-01T23:59:59.999999Z' },
      { id: 'c', at: '2025-06-02T00:00:00Z' },
      { id: 'd', at: '2025-07-02T12:00:00Z' },
    ]);
    expect(await idsOf('ranged', 'from=2025-06-02')).toEqual(['d', 'c']);
    expect(await idsOf('ranged', 'to=2025-06-01')).toEqual(['b', 'a']);
    expect(await idsOf('ranged', 'from=2025-06-01&to=2025-06-01')).toEqual(['b', 'a']);
    expect(await idsOf('ranged', 'to=2025-06-02T00:00:00Z')).toEqual(['b', 'a']);
    expect(await idsOf('ranged', 'from=2025-06-01T23:59:59.999999Z&to=2025-07-02T12:00:00%2B00:00')).toEqual([
      'c',
      'b',
    ]);
    expect(await walk('ranged', 'from=2025-06-01&to=2025-06-02&limit=1')).toEqual(['c', 'b', 'a']);
  });

  test('events of a user without a profile are listed, and an unknown user is 404', async () => {
    await store('unknown', [{ id: 'u-a', at: '2025-06-01T00:00:00Z' }]);
    expect(await refusal('/v1/users/unknown')).toEqual([404, ['not_found']]);
    expect(await idsOf('unknown')).toEqual(['u-a']);
    expect(await idsOf('unknown', 'event_name=none')).toEqual([]);
    await t.system.pool.query(`insert into users (environment_id, user_id) values ($1, 'silent')`, [
      t.environment.environmentId,
    ]);
    expect(await idsOf('silent')).toEqual([]);
    expect(await refusal('/v1/users/nobody/events')).toEqual([404, ['not_found']]);
    expect(await refusal('/v1/users/unknown/events', { key: other.key })).toEqual([404, ['not_found']]);
    await store('unknown', [{ id: 'theirs', at: '2025-06-02T00:00:00Z' }], other);
    expect(await idsOf('unknown')).toEqual(['u-a']);
  });

  test.each([
    ['limit=0', 'invalid_field'],
    ['cursor=nonsense', 'invalid_cursor'],
    [`cursor=${Buffer.from('yesterday e1').toString('base64url')}`, 'invalid_cursor'],
    ['from=yesterday', 'invalid_date'],
    ['to=2025-02-30', 'invalid_date'],
    ['from=2025-06-02&to=2025-06-01', 'invalid_range'],
    [`event_name=${'x'.repeat(257)}`, 'invalid_field'],
  ])('events of a user with %s are 400 %s', async (query, code) => {
    await store('asked', [{ id: query.slice(0, 200), at: '2025-06-01T00:00:00Z' }]);
    expect(await refusal(`/v1/users/asked/events?${query}`)).toEqual([400, [code]]);
  });
});
