import { describe, expect, test } from 'vitest';
import type { JobDetail as Detail, Plan } from '../../../src/load/api.ts';
import { MAX_PLAN_PROPERTIES } from '../../../src/load/limits.ts';
import { readProfiles } from '../../support/files/load-file.ts';
import { type ErrorBody, openServer } from '../../support/servers/http.ts';

const { t, server } = await openServer({ worker: true });

const csv = { 'content-type': 'text/csv' };
const ndjson = { 'content-type': 'application/x-ndjson' };

async function post(path: string, body: string, headers: Record<string, string> = csv): Promise<string> {
  const answer = await server.json<Detail>(path, { method: 'POST', body, headers });
  expect(answer.status).toBe(200);
  await t.ended(answer.body.job_id);
  return answer.body.job_id;
}
const detail = async (jobId: string) => (await server.json<Detail>(`/v1/background_jobs/${jobId}`)).body;
const planOf = async (jobId: string) => (await server.json<Plan>(`/v1/background_jobs/${jobId}/plan`)).body;
const file = async (jobId: string, format: string) =>
  (await server.fetch(`/v1/background_jobs/${jobId}/plan?format=${format}`)).text();
const profiles = () => readProfiles(t.system, t.environment.environmentId);

describe('a plan', () => {
  // proves: plan-exact
  test('a plan reports every change by row and by property, and writes nothing', async () => {
    const stored = [
      { user_id: 'p1', metadata: { tier: 'free', seats: 1, old: 'x' } },
      { user_id: 'p2', metadata: { tier: 'free' } },
      { user_id: 'p3', metadata: { tier: 'free' } },
    ];
    await post('/v1/imports', stored.map((each) => `${JSON.stringify(each)}\n`).join(''), ndjson);
    const before = await profiles();
    const lines = [
      { user_id: 'p1', company_id: 'pc', metadata: { tier: 'pro', seats: '2', old: null, added: 1 } },
      { user_id: 'p2', metadata: { tier: 'pro' } },
      { user_id: 'p2', metadata: { tier: 'free' } },
      { user_id: 'p3', metadata: { tier: 'free' } },
      { user_id: '=p4', metadata: { tier: '@x' } },
      { user_id: '' },
    ];
    const text = lines.map((each) => `${JSON.stringify(each)}\n`).join('');
    const jobId = await post('/v1/imports?plan=true', text, ndjson);
    expect(await profiles()).toEqual(before);
    const expected = {
      applied_at: null,
      counts: {
        read: 6,
        inserted: 1,
        updated: 1,
        unchanged: 2,
        removed: 0,
        superseded: 1,
        rejected: 1,
      },
      profiles: { users: { new: 1, changed: 1 }, companies: { new: 1, changed: 0 } },
      values: { appear: 2, change: 2, go: 1, change_type: 1 },
    };
    expect(await detail(jobId)).toMatchObject({ status: 'completed', dry_run: true, plan: expected });
    const plan = await planOf(jobId);
    expect(plan).toMatchObject({ job_id: jobId, ...expected, more_properties: 0 });
    expect(plan.properties).toEqual([
      { entity: 'users', name: 'tier', appear: 1, change: 1, go: 0, change_type: 0, is_new: false },
      { entity: 'users', name: 'added', appear: 1, change: 0, go: 0, change_type: 0, is_new: true },
      { entity: 'users', name: 'old', appear: 0, change: 0, go: 1, change_type: 0, is_new: false },
      { entity: 'users', name: 'seats', appear: 0, change: 1, go: 0, change_type: 1, is_new: false },
    ]);
    expect(plan.sample).toEqual([
      {
        entity: 'users',
        id: 'p1',
        before: { tier: 'free', seats: 1, old: 'x' },
        after: { tier: 'pro', seats: '2', added: 1 },
        company_before: null,
        company_after: 'pc',
        more_properties: 0,
      },
    ]);
    expect(await file(jobId, 'csv')).toBe(
      [
        'entity,id,outcome,property,before,after',
        'companies,pc,new,,,',
        'users,p1,changed,company_id,,pc',
        'users,p1,changed,added,,1',
        'users,p1,changed,old,x,',
        'users,p1,changed,seats,1,2',
        'users,p1,changed,tier,free,pro',
        "users,'=p4,new,tier,,'@x",
        '',
      ].join('\n'),
    );
    const rows = (await file(jobId, 'ndjson')).trimEnd().split('\n');
    expect(rows.map((row) => JSON.parse(row))).toMatchObject([
      { entity: 'companies', id: 'pc', outcome: 'new', before: null, after: {} },
      {
        id: 'p1',
        outcome: 'changed',
        before: { tier: 'free', seats: 1, old: 'x' },
        after: { tier: 'pro', seats: '2', added: 1 },
        company_after: 'pc',
      },
      { id: '=p4', outcome: 'new', before: null, after: { tier: '@x' } },
    ]);
  });

  // proves: plan-exact
  test('a plan counts new events by name and by day', async () => {
    const event = (event_name: string, inserted_at: string, n = 1) =>
      `${JSON.stringify({ event_type: 'track', user_id: 'p1', event_name, inserted_at, n })}\n`;
    const storedEvent = event('Opened', '2026-01-02T10:00:00Z');
    await post('/v1/imports', storedEvent, ndjson);
    const others = [
      event('Opened', '2026-01-02T23:59:59Z'),
      event('Paid', '2026-01-03T00:00:00Z'),
      event('Paid', '2026-01-05T00:00:00+02:00'),
      event('Paid', '2026-01-05T00:00:00+02:00', 2),
    ];
    const jobId = await post('/v1/imports?plan=true', [storedEvent, ...others].join(''), ndjson);
    expect((await planOf(jobId)).events).toEqual({
      names: [
        { name: 'Paid', count: 3 },
        { name: 'Opened', count: 1 },
      ],
      more_names: 0,
      days: [
        { day: '2026-01-02', count: 1 },
        { day: '2026-01-03', count: 1 },
        { day: '2026-01-04', count: 2 },
      ],
      earlier_days: 0,
    });
  });

  // proves: plan-exact
  test('a plan names the most frequent events and the latest days, and counts the others', async () => {
    const lines = Array.from({ length: MAX_PLAN_PROPERTIES + 2 }, (_, n) => {
      const day = new Date(Date.UTC(2020, 0, 1 + n)).toISOString();
      return `track,p1,name ${n},${day}\n`.repeat(n === 0 ? 2 : 1);
    });
    const text = `event_type,user_id,event_name,inserted_at\n${lines.join('')}`;
    const { names, days, ...more } = (await planOf(await post('/v1/imports?plan=true', text))).events;
    expect(more).toEqual({ more_names: 2, earlier_days: 2 });
    expect([names.length, days.length]).toEqual([MAX_PLAN_PROPERTIES, MAX_PLAN_PROPERTIES]);
    expect([names[0], days[0]]).toEqual([
      { name: 'name 0', count: 2 },
      { day: '2020-01-03', count: 1 },
    ]);
  });

  test('a plan shows numbers with all digits, and cuts long values', async () => {
    await post('/v1/imports', '{"user_id":"d1","a":"x","n":1}\n', ndjson);
    const long = 'y'.repeat(1_000);
    const next = `{"user_id":"d1","a":"${long}","n":123456789012345678901}\n`;
    const jobId = await post('/v1/imports?plan=true', next, ndjson);
    const text = await (await server.fetch(`/v1/background_jobs/${jobId}/plan`)).text();
    expect(text).toContain('123456789012345678901');
    expect(text).toContain(`"${'y'.repeat(256)}…"`);
    expect(await file(jobId, 'ndjson')).toContain('123456789012345678901');
  });

  test('a plan is 404 for a job without one, and for another environment', async () => {
    const loaded = await post('/v1/imports', 'user_id\ng1\n');
    const none = await server.json<ErrorBody>(`/v1/background_jobs/${loaded}/plan`);
    expect([none.status, none.body.errors[0]?.message]).toEqual([404, 'The job has no plan']);
    expect((await detail(loaded)).plan).toBeNull();
    const planned = await post('/v1/imports?plan=true', 'user_id\ng2\n');
    const { key } = await t.addEnvironment('others');
    for (const format of ['json', 'csv']) {
      const other = await server.json(`/v1/background_jobs/${planned}/plan?format=${format}`, { key });
      expect(other.status).toBe(404);
    }
    const wrong = await server.json<ErrorBody>(`/v1/background_jobs/${planned}/plan?format=xml`);
    expect([wrong.status, wrong.body.errors[0]?.message]).toEqual([
      400,
      'format must be json, csv or ndjson',
    ]);
  });
});

describe('applying a plan', () => {
  const apply = (jobId: string, body: object | null = null, headers: Record<string, string> = {}) =>
    server.json<Detail & ErrorBody>(`/v1/background_jobs/${jobId}/apply`, {
      method: 'POST',
      ...(body !== null && { body: JSON.stringify(body) }),
      headers: { ...(body !== null && { 'content-type': 'application/json' }), ...headers },
    });

  test('an applied plan is loaded as the same job, once, and a repeated request with its key gets the same answer', async () => {
    const jobId = await post('/v1/imports?plan=true', 'user_id,a\nh1,1\nh2,2\n');
    const key = { 'idempotency-key': 'apply-h' };
    const answer = await apply(jobId, null, key);
    expect([answer.status, answer.body.job_id, answer.body.status]).toEqual([202, jobId, 'queued']);
    await t.ended(jobId);
    expect((await apply(jobId, {}, key)).status).toBe(202);
    expect(await detail(jobId)).toMatchObject({
      status: 'completed',
      dry_run: false,
      counts: { inserted: 2 },
      plan: { applied_at: expect.any(String), on_drift: 'refuse', counts: { inserted: 2 } },
    });
    expect((await profiles()).users['h2']?.metadata).toEqual({ a: '2' });
    const again = await apply(jobId);
    expect([again.status, again.body.errors[0]?.error_code]).toEqual([409, 'plan_already_applied']);
    const other = await apply(jobId, { on_drift: 'proceed' }, key);
    expect(other.body.errors[0]?.error_code).toBe('idempotency_conflict');
  });

  test('an applied plan counts its time from the start of loading, without the planning and the pause', async () => {
    const jobId = await post('/v1/imports?plan=true', 'user_id\nw1\nw2\n');
    // Moves all times of the plan back by an hour.
    await t.system.pool.query(
      `update loads set accepted_at = accepted_at - interval '1 hour', started_at = started_at - interval '1 hour',
        ended_at = ended_at - interval '1 hour',
        work_started_at = work_started_at - interval '1 hour' where job_id = $1`,
      [jobId],
    );
    expect((await apply(jobId)).status).toBe(202);
    await t.ended(jobId);
    const { start_time, end_time, processing_since, rows_per_second } = await detail(jobId);
    const [start, since, end] = [start_time, processing_since ?? '', end_time ?? ''].map(Date.parse) as [
      number,
      number,
      number,
    ];
    expect(since - start).toBeGreaterThanOrEqual(3_600_000);
    // The hour between the plan and the loading must not count as time of loading. If it did, the
    // rate of the two rows would be rounded to 0 rows per second.
    expect(rows_per_second).toBe(Math.round(2_000 / Math.max(1, end - since)));
  });
});
