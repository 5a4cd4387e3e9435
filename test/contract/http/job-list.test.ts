import { describe, expect, test } from 'vitest';
import { createApiKey } from '../../../src/access/key-store.ts';
import { RATE_PERIODS } from '../../../src/base/limits.ts';
import type { JobListItem as Job } from '../../../src/http/job.ts';
import type { Run } from '../../../src/http/run.ts';
import type { Overview } from '../../../src/jobs/overview-api.ts';
import { form, openServer, refusalOf } from '../../support/servers/http.ts';
import type { Tenant } from '../../support/servers/system.ts';
import { waitFor } from '../../support/wait-for.ts';

const { t, server } = await openServer({ settings: { CHUNK_BYTES: '64k' } });

let serial = 0;
async function load(
  { key }: Tenant,
  { filename = 'users.csv', rows = 1, headers = {} as Record<string, string>, query = '' } = {},
): Promise<string> {
  const file = `user_id,name\n${Array.from({ length: rows }, (_, row) => `u${++serial},n${row}\n`).join('')}`;
  const path = `/v1/imports${query}`;
  const { body } = await server.json<Job>(path, {
    method: 'POST',
    key,
    headers,
    body: form(file, { filename }),
  });
  return body.job_id;
}

async function askExport({ key }: Tenant): Promise<string> {
  const headers = { 'content-type': 'application/json' };
  const { body } = await server.json<Job>('/api/v1/analytics/exports', {
    method: 'POST',
    key,
    headers,
    body: '{}',
  });
  return body.job_id;
}

const list = async ({ key }: Tenant, query: string) => {
  const { body } = await server.json<Job[]>(`/v1/background_jobs?${query}`, { key });
  return body.map(({ job_id }) => job_id);
};

describe('the list of jobs', () => {
  test('jobs are listed by file, bytes, key, request, Idempotency-Key, kind, status and time', async () => {
    const tenant = await t.addEnvironment('filters');
    const { environmentId } = tenant.environment;
    const ownKey = await createApiKey(t.system.db, environmentId, { label: 'own' });
    const percent = await load(tenant, { filename: '100%_Users.CSV' });
    const idempotent = await load(tenant, {
      headers: { 'idempotency-key': 'nightly', 'x-request-id': 'r-1' },
    });
    const byKey = await load({ ...tenant, key: ownKey.key });
    const exported = await askExport(tenant);
    const all = [exported, byKey, idempotent, percent];
    expect(await list(tenant, '')).toEqual(all);
    expect(await list(tenant, 'filename=users.csv')).toEqual(all.slice(1));
    expect(await list(tenant, `filename=${encodeURIComponent('0%_users')}`)).toEqual([percent]);
    expect(await list(tenant, 'filename=0__users')).toEqual([]);
    expect(await list(tenant, 'idempotency_key=nightly')).toEqual([idempotent]);
    expect(await list(tenant, 'request_id=r-1')).toEqual([idempotent]);
    expect(await list(tenant, `key=${ownKey.keyId}`)).toEqual([byKey]);
    expect(await list(tenant, 'type=import,export')).toEqual(all);
    expect(await list(tenant, 'type=export,delete_users&status=queued,failed')).toEqual([exported]);
    expect(await list(tenant, 'status=failed,cancelled')).toEqual([]);
    const { body } = await server.json<Run>(`/v1/background_jobs/${byKey}`, { key: tenant.key });
    expect(await list(tenant, `sha256=${body.sources[0]?.sha256?.toUpperCase()}`)).toEqual([byKey]);
    const { body: newest } = await server.json<Job[]>('/v1/background_jobs?limit=1', { key: tenant.key });
    expect(await list(tenant, `until=${newest[0]?.start_time}`)).toEqual(all.slice(1));
    expect(await list(await t.addEnvironment('others'), 'idempotency_key=nightly')).toEqual([]);
  });
});

describe('a job', () => {
  // proves: provenance
  test('a job reports its origin, request, options and the time of each phase', async () => {
    const tenant = await t.addEnvironment('history');
    const { key } = tenant;
    const keyId = key.split('_')[1];
    const headers = { 'x-request-id': 'asked-for' };
    const jobId = await load(tenant, { rows: 20_000, headers, query: '?max_errors=7&entity=users' });
    const exported = await askExport(tenant);
    const deleted = await server.json<Job>('/v1/users', {
      method: 'DELETE',
      key,
      headers: { 'content-type': 'application/json' },
      body: '{"users":["u1"]}',
    });
    const show = async (id: string) => (await server.json<Run>(`/v1/background_jobs/${id}`, { key })).body;
    const worker = t.startWorker();
    await waitFor('all to end', async () => (await list(tenant, 'status=completed')).length === 3);
    await worker.stop();
    const detail = await show(jobId);
    expect(detail).toMatchObject({
      request_id: 'asked-for',
      origin: { kind: 'api_key', name: keyId },
      options: { entity: 'users', max_errors: 7, dry_run: false },
    });
    expect(detail.phases.map(({ phase }) => phase)).toEqual(
      expect.arrayContaining(['accepted', 'started', 'merged', 'completed']),
    );
    const times = detail.phases.map(({ at }) => at);
    expect(times).toEqual([...times].sort());
    expect(await show(exported)).toMatchObject({
      origin: { kind: 'api_key', name: keyId },
      options: { format: 'ndjson' },
    });
    expect(await show(deleted.body.job_id)).toMatchObject({
      options: { entity: 'users', ids: 1, purge_exports: false },
    });
    expect(await refusalOf(server, `/v1/background_jobs/${jobId}`)).toEqual([404, ['not_found']]);
  });
});

describe('the overview', () => {
  const show = async (key: string, query = '') =>
    (await server.json<Overview>(`/v1/overview${query}`, { key })).body;

  // proves: console-truth
  test('the overview has the outcomes of each period, the jobs of each day, the lane in its order, the failures and the unaccounted records', async () => {
    const tenant = await t.addEnvironment('overview');
    const { key } = tenant;
    const post = (path: string, body: object) => server.fetch(path, { key, json: body });
    await post('/v1/identify', { user_id: 'u1' });
    await post('/v1/track', {});
    await post('/v1/batch', [{ type: 'track', user_id: 'u1', event_name: 'e' }, {}] as object);
    const ids = [await load(tenant, { rows: 5 }), await load(tenant, { query: '?max_errors=0' })];
    serial--;
    ids.push(await load(tenant));
    const waiting = await show(key);
    expect(waiting.lane.map(({ job_id, position }) => [job_id, position])).toEqual(
      ids.map((id, at) => [id, at]),
    );
    const refused = await server.json<Job>('/v1/imports', {
      method: 'POST',
      key,
      body: form('user_id,name\n,x\n'),
    });
    const worker = t.startWorker();
    await waitFor('all to end', async () => (await list(tenant, 'status=completed')).length === 3);
    await waitFor(
      'the failure',
      async () => (await list(tenant, 'status=failed'))[0] === refused.body.job_id,
    );
    await worker.stop();
    await t.system.rates.flush();
    const overview = await show(key);
    expect(overview).toMatchObject({ queued: 0, failed_24h: 1, unaccounted: 0, lane: [] });
    for (const [period, minutes] of Object.entries(RATE_PERIODS)) {
      const { rates, rate_minutes, job_days } = await show(key, `?period=${period}`);
      const sum = (name: 'accepted' | 'unchanged' | 'rejected') =>
        rates.reduce((total, rate) => total + rate[name], 0);
      expect([rates.length, rate_minutes, sum('accepted'), sum('unchanged'), sum('rejected')]).toEqual([
        60,
        minutes,
        8,
        1,
        3,
      ]);
      const today = new Date().toISOString().slice(0, 10);
      expect([job_days.length, job_days.at(-1)]).toEqual([30, { day: today, jobs: 4, failed: 1 }]);
    }
    expect(overview.findings.items).toEqual([]);
  });

  // proves: console-truth
  test('the overview shows the number of unaccounted records when it is not 0', async () => {
    const tenant = await t.addEnvironment('unaccounted');
    const jobId = await load(tenant, { rows: 4 });
    await t.system.pool.query('update loads set rows_read = 3, rows_inserted = 2 where job_id = $1', [jobId]);
    // The load claims to have read three records, but none of them is in a chunk that is done. Each
    // record counts as unaccounted once. One record also has no outcome, so it counts a second
    // time.
    expect((await show(tenant.key)).unaccounted).toBe(4);
  });

  test('the overview has the findings of the checks, only for the environment of the service', async () => {
    const findings = await waitFor('the checks', async () => {
      const seen = await show(t.key);
      return seen.findings.is_known && seen.findings;
    });
    expect(findings.items.map(({ check }) => check)).toContain('node');
    const other = await t.addEnvironment('no-operator');
    expect((await show(other.key)).findings).toMatchObject({ is_known: true, items: [] });
  });
});
