import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import type { Report } from '../../../src/api/report.ts';
import { openServer, refusalOf } from '../../support/http.ts';

const { t, server } = await openServer();
const other = await t.addEnvironment('other');

const batch = [
  { type: 'identify', user_id: 'a', company: { company_id: 'acme' } },
  { type: 'identify', user_id: 'b', metadata: { plan: 'pro' } },
  { type: 'identify', user_id: 'idle' },
  ...['2026-11-19T23:59:59.999999Z', '2026-11-20T00:00:00Z', '2026-11-20T23:59:59Z'].map((inserted_at) => ({
    ...{ type: 'track', user_id: 'a', event_name: 'opened', inserted_at },
  })),
  { type: 'track', user_id: 'anonymous-1', event_name: '=sum(1)', inserted_at: '2026-11-21T10:00:00Z' },
  { type: 'track', user_id: 'b', event_name: 'opened', inserted_at: '2026-11-21T10:00:00Z' },
];
await server.fetch('/v1/batch', { json: { batch } });
await server.fetch('/v1/batch', { json: { batch }, key: other.key });
await server.fetch('/v1/track', { json: { user_id: 'c', event_name: 'theirs' }, key: other.key });

const read = async (query = '') => (await server.json<Report>(`/v1/report${query}`)).body;

describe('the report of an environment', () => {
  // proves: report
  test('counts its events by day and name, and users with and without profile and company', async () => {
    expect(await read()).toEqual({
      events: 5,
      is_complete: true,
      event_names: [
        { event_name: 'opened', events: 4 },
        { event_name: '=sum(1)', events: 1 },
      ],
      days: [
        { day: '2026-11-19', event_name: 'opened', events: 1 },
        { day: '2026-11-20', event_name: 'opened', events: 2 },
        { day: '2026-11-21', event_name: '=sum(1)', events: 1 },
        { day: '2026-11-21', event_name: 'opened', events: 1 },
      ],
      users: { profiles: 3, with_company: 1, without_company: 2, with_events: 3, without_profile: 1 },
      companies: 1,
    });
  });

  // proves: report
  test('counts the events of a range: whole days, or instants of which the last is excluded', async () => {
    const sums = async (query: string) => {
      const { events, users } = await read(query);
      return [events, users.with_events, users.profiles];
    };
    expect(await sums('?from=2026-11-20&to=2026-11-20')).toEqual([2, 1, 3]);
    expect(await sums('?to=2026-11-20T00:00:00Z')).toEqual([1, 1, 3]);
    expect(await sums('?from=2026-11-22')).toEqual([0, 0, 3]);
  });

  // proves: report
  test('counts an alias as its person, also while its events are being joined', async () => {
    const { environmentId } = other.environment;
    await sql`insert into aliases (environment_id, alias, user_id, given_to, load_id)
      values (${environmentId}, 'anonymous-1', 'a', 'a', 0)`.execute(t.system.db);
    const { body } = await server.json<Report>('/v1/report', { key: other.key });
    // Of a, b and c, who has no profile.
    expect(body.users).toMatchObject({ with_events: 3, without_profile: 1 });
  });

  // proves: formulas
  test('is CSV by day and name, in which a spreadsheet runs nothing', async () => {
    const answer = await server.fetch('/v1/report?format=csv');
    expect(answer.headers.get('content-type')).toBe('text/csv; charset=utf-8');
    expect((await answer.text()).split('\n')).toEqual([
      'day,event_name,events',
      '2026-11-19,opened,1',
      '2026-11-20,opened,2',
      "2026-11-21,'=sum(1),1",
      '2026-11-21,opened,1',
      '',
    ]);
  });

  test.each([
    ['from=2026-13-01', 'invalid_date'],
    ['from=2026-11-21&to=2026-11-20', 'invalid_range'],
    ['format=xml', 'invalid_field'],
  ])('is refused for %s', async (query, code) => {
    expect(await refusalOf(server, `/v1/report?${query}`)).toEqual([400, [code]]);
  });
});
