import { rename } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { acceptDeletion } from '../../support/servers/deletions.ts';
import { acceptExport } from '../../support/servers/exports.ts';
import { type ErrorBody, openServer, serversPerTest, type TestServer } from '../../support/servers/http.ts';
import { scrape } from '../../support/servers/metrics.ts';
import type { TestSystem } from '../../support/servers/system.ts';
import { waitFor } from '../../support/wait-for.ts';

const { start, listen, cleanups } = serversPerTest();
/**
 * A system shared by tests that check different metrics. The first test expects that the server has
 * received no earlier requests.
 */
const { t: shared, server: sharedServer } = await openServer();

/** Starts another server on the same data. The new server has not read the ledger yet. */
async function another(system: TestSystem): Promise<TestServer> {
  const other = system.openAnother();
  cleanups.push(() => other.close());
  return listen({ ...system, system: other });
}

const upload = (server: TestServer, body: string) =>
  server.json<{ job_id: string }>('/v1/imports', {
    method: 'POST',
    body,
    headers: { 'content-type': 'text/csv' },
  });

const unknownJob = '01a1f879-8845-7223-9ca4-ceafb3823817';

describe('requests', () => {
  test('requests are counted by method, pattern of the route and status, and timed by route', async () => {
    const server = sharedServer;
    await server.fetch('/v1/background_jobs');
    await server.fetch('/v1/background_jobs');
    await server.fetch('/v1/background_jobs', { key: null });
    await server.fetch('/v1/background_jobs', { method: 'HEAD' });
    await server.fetch(`/v1/background_jobs/${unknownJob}`);
    await server.fetch('/v1/background_jobs', { method: 'DELETE' });
    await server.fetch('/somewhere/else?secret=1');
    const { page, samples } = await scrape(server);
    const requests = Object.fromEntries(
      [...samples].filter(([name]) => name.startsWith('sluice_http_requests_total')),
    );
    const series = (method: string, route: string, status: number) =>
      `sluice_http_requests_total{method="${method}",route="${route}",status="${status}"}`;
    expect(requests).toEqual({
      [series('GET', '/v1/background_jobs', 200)]: 2,
      [series('GET', '/v1/background_jobs', 401)]: 1,
      [series('HEAD', '/v1/background_jobs', 200)]: 1,
      [series('GET', '/v1/background_jobs/:job_id', 404)]: 1,
      [series('DELETE', 'unknown', 405)]: 1,
      [series('GET', 'unknown', 404)]: 1,
    });
    expect(page).not.toMatch(/somewhere|secret|01a1f879/);
    expect(samples.get('sluice_http_request_duration_seconds_count{route="/v1/background_jobs"}')).toBe(4);
  });
});

test('single records are counted by kind and outcome, and records of a batch one by one', async () => {
  const [system, server] = [shared, sharedServer];
  const post = async (path: string, record: unknown) => {
    const headers = { 'content-type': 'application/json' };
    return (await server.fetch(path, { method: 'POST', headers, body: JSON.stringify(record) })).status;
  };
  const event = { type: 'track', user_id: 'u', event_name: 'e' };
  expect(await post('/v1/track', event)).toBe(202);
  expect(await post('/v1/identify', {})).toBe(400);
  expect(await post('/v1/batch', [event, event, {}])).toBe(200);
  expect(await post('/v1/batch', 'nonsense')).toBe(400);
  await system.system.pool.query('alter table companies rename to gone');
  expect(await post('/v1/companies/identify', { company_id: 'c' })).toBe(500);
  await system.system.pool.query('alter table gone rename to companies');
  const { samples } = await scrape(server);
  const records = [...samples].filter(
    ([name, count]) => name.startsWith('sluice_ingested_records_total') && count > 0,
  );
  const series = (entity: string, outcome: string) =>
    `sluice_ingested_records_total{entity="${entity}",outcome="${outcome}"}`;
  expect(Object.fromEntries(records)).toEqual({
    [series('events', 'accepted')]: 1,
    [series('users', 'refused')]: 1,
    [series('batches', 'accepted')]: 2,
    [series('batches', 'refused')]: 2,
    [series('companies', 'failed')]: 1,
  });
  expect(samples.get('sluice_commit_window_records_sum{entity="events"}')).toBe(1);
});

describe('the ledger', () => {
  test('metrics of the ledger show waiting, running and completed loads', async () => {
    const { system, server } = await start();
    const first = await upload(server, 'user_id,name\nu1,Ada\nu1,Eve\n,nobody\n');
    const second = await upload(server, 'user_id,name\nu2,Eve\n');
    await waitFor('the first load to be started', async () => {
      const { body } = await server.json<{ status: string }>(`/v1/background_jobs/${first.body.job_id}`);
      return body.status === 'processing';
    });
    const waiting = (await scrape(await another(system))).samples;
    expect(waiting.get('sluice_database_up')).toBe(1);
    expect(waiting.get('sluice_loads{status="processing"}')).toBe(1);
    expect(waiting.get('sluice_loads{status="queued"}')).toBe(1);
    expect(waiting.get('sluice_queue_chunks{state="pending"}')).toBe(2);
    expect(waiting.get('sluice_queue_chunks{state="running"}')).toBe(0);
    expect(waiting.get('sluice_oldest_waiting_seconds')).toBeGreaterThan(0);
    await system.system.pool.query(
      `update tasks set attempt = 1, lease_until = now() + interval '2 s' where kind = 'chunk'`,
    );
    const running = (await scrape(await another(system))).samples;
    // Only chunks of running loads may count as running.
    expect(running.get('sluice_queue_chunks{state="running"}')).toBe(1);
    expect(running.get('sluice_queue_chunks{state="pending"}')).toBe(1);
    system.startWorker();
    await system.ended(first.body.job_id);
    await system.ended(second.body.job_id);
    const { samples: after, page } = await scrape(await another(system));
    expect(after.get('sluice_loads{status="queued"}')).toBe(0);
    expect(after.get('sluice_queue_chunks{state="pending"}')).toBe(0);
    expect(after.get('sluice_oldest_waiting_seconds')).toBe(0);
    for (const [outcome, rows] of Object.entries({ inserted: 2, superseded: 1, rejected: 1, updated: 0 })) {
      const name = `sluice_load_rows{entity="users",outcome="${outcome}"}`;
      expect([name, after.get(name)]).toEqual([name, rows]);
    }
    expect(after.get('sluice_reconcile_differences')).toBe(0);
    // The page must not contain environment names, keys or job ids.
    const { name, appToken } = system.environment;
    for (const word of [name, appToken, first.body.job_id, 'slk_']) expect(page).not.toContain(word);
  });

  test('metrics of the ledger show running and waiting exports and deletions, and the workers that were seen lately', async () => {
    const { system: base, environment } = shared;
    const running = await acceptExport(base, environment.environmentId);
    await acceptExport(base, environment.environmentId);
    await acceptDeletion(base, environment.environmentId, 'users', ['a']);
    await acceptDeletion(base, environment.environmentId, 'users', ['b']);
    await base.pool.query(
      `update exports set status = 'processing', rows_written = 70, bytes_written = 900 where export_id = $1`,
      [running.exportId],
    );
    await base.pool.query(`update exports set requested_at = now() - interval '1 h' where status = 'queued'`);
    await base.pool.query(
      `update deletions set accepted_at = now() - interval '1 h' where status = 'queued'`,
    );
    await base.pool.query(`insert into workers (worker_id, host, pid, seen_at)
      values (gen_random_uuid(), 'alive', 7, now()), (gen_random_uuid(), 'dead', 8, now() - interval '1 min')`);
    const { samples } = await scrape(await another(shared));
    expect(samples.get('sluice_workers')).toBe(1);
    const jobs = Object.fromEntries(
      [...samples].filter(([name]) => /^sluice_.*(export|deletion)/.test(name)),
    );
    expect(jobs).toEqual({
      'sluice_exports{status="queued"}': 1,
      'sluice_exports{status="processing"}': 1,
      sluice_running_export_rows: 70,
      sluice_running_export_bytes: 900,
      sluice_oldest_queued_export_seconds: expect.closeTo(3_600, -2),
      'sluice_deletions{status="queued"}': 1,
      'sluice_deletions{status="processing"}': 1,
      sluice_oldest_queued_deletion_seconds: expect.closeTo(3_600, -2),
    });
  });

  // proves: counts-balance
  test('a ledger that does not balance is a difference in the metrics', async () => {
    const { system, server } = await start({ worker: true });
    const { body } = await upload(server, 'user_id,name\nu1,Ada\nu2,Eve\n');
    await system.ended(body.job_id);
    await system.system.pool.query('alter table loads drop constraint loads_completed_balances');
    for (const column of ['rows_inserted', 'total_rows']) {
      await system.system.pool.query(`update loads set ${column} = ${column} + 1`);
      const { samples } = await scrape(await another(system));
      expect([column, samples.get('sluice_reconcile_differences')]).toEqual([column, 1]);
      await system.system.pool.query(`update loads set ${column} = ${column} - 1`);
    }
    expect((await scrape(await another(system))).samples.get('sluice_reconcile_differences')).toBe(0);
  });
});

test('metrics show the parts of a server as /health/ready does, and its connections as the pool does', async () => {
  const [system, server] = [shared, sharedServer];
  const { samples } = await scrape(server);
  for (const part of ['database', 'queue', 'storage'])
    expect(samples.get(`sluice_part_up{part="${part}"}`)).toBe(1);
  await rename(system.config.filesDir, `${system.config.filesDir}-gone`);
  expect((await scrape(server)).samples.get('sluice_part_up{part="storage"}')).toBe(0);
  const connection = await system.system.pool.connect();
  const busy = 'sluice_pool_connections{state="busy"}';
  expect((await scrape(server)).samples.get(busy)).toBe(1);
  connection.release();
  expect((await scrape(server)).samples.get(busy)).toBe(0);
});

describe('METRICS_TOKEN', () => {
  const token = 'a-token-for-the-scraper';

  test('METRICS_TOKEN refuses scrapers without the token, and guards no health check', async () => {
    const { system, server } = await start({ settings: { METRICS_TOKEN: token } });
    const ask = (authorization?: string) =>
      server.json<ErrorBody>('/metrics', {
        key: null,
        headers: authorization === undefined ? {} : { authorization },
      });
    for (const wrong of [undefined, 'Bearer', `Bearer ${token}.`, `Token ${token}`, `Token ${system.key}`]) {
      const { status, body, headers } = await ask(wrong);
      expect([wrong, status, body.errors[0]?.error_code]).toEqual([wrong, 401, 'invalid_api_key']);
      expect(headers.get('www-authenticate')).toBe('Bearer');
    }
    for (const right of [`Bearer ${token}`, `bearer ${token}`]) {
      const response = await server.fetch('/metrics', { key: null, headers: { authorization: right } });
      expect([right, response.status]).toEqual([right, 200]);
    }
    for (const path of ['/health/live', '/health/ready']) {
      expect((await server.fetch(path, { key: null })).status).toBe(200);
    }
  });
});
