import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'kysely';
import pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { pino } from 'pino';
import { afterAll, describe, expect, test } from 'vitest';
import { startWorker } from '../../jobs/worker.ts';
import { startPoller } from '../../src/base/timers.ts';
import type { System } from '../../src/context.ts';
import { ConnectionMonitor } from '../../src/postgres/connection-monitor.ts';
import { createPool } from '../../src/postgres/pool.ts';
import { acceptFile } from '../support/files/load-file.ts';
import { acceptExport } from '../support/servers/exports.ts';
import { serve } from '../support/servers/http.ts';
import { createTestDatabase } from '../support/servers/postgres.ts';
import { type PostgresProxy, startPostgresProxy } from '../support/servers/postgres-proxy.ts';
import { openTestSystem, type TestSystem } from '../support/servers/system.ts';
import { waitFor } from '../support/wait-for.ts';

/**
 * Maximum milliseconds from the moment a connection falls silent until another connection has done
 * its work.
 */
const mendedMs = 30_000;
const rows = 3_000;
const cleanups: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface ProxiedSystem {
  readonly t: TestSystem;
  readonly proxy: PostgresProxy;
  /** A system whose connections go through the proxy, including those of the queue. */
  readonly system: System;
}

async function openBehindProxy({ worker = false } = {}): Promise<ProxiedSystem> {
  const t = await openTestSystem({ queue: 'postgres' });
  cleanups.push(() => t.close());
  const proxy = await startPostgresProxy(t.databaseUrl);
  cleanups.push(() => proxy.close());
  const system = t.openAnother({ databaseUrl: proxy.url });
  cleanups.push(() => system.close());
  if (worker) {
    const workerSystem = t.openAnother({ databaseUrl: proxy.url });
    const running = startWorker(workerSystem);
    cleanups.push(() => running.stop().then(() => workerSystem.close()));
  }
  return { t, proxy, system };
}

/** Uploads a file. Repeats the upload until the service accepts it. */
function accept(t: TestSystem, system: System, plan: string): Promise<string> {
  const lines = Array.from({ length: rows }, (_, n) => `u${n},${plan},c${n % 50}\n`);
  const file = `user_id,plan,company_id\n${lines.join('')}`;
  return waitFor('the load to be accepted', () => acceptFile(system, t.environment.environmentId, file), {
    timeoutMs: mendedMs,
  });
}

async function expectLoaded(t: TestSystem, jobId: string, plan: string): Promise<void> {
  const load = await t.ended(jobId, { timeoutMs: mendedMs });
  expect(load).toMatchObject({ status: 'completed', failure: null });
  const { tally } = load;
  expect(tally).toMatchObject({ read: rows, rejected: 0 });
  const counts = await sql<{ users: number; right: number }>`
    select count(*)::int as users, count(*) filter (where metadata = ${JSON.stringify({ plan })})::int as right
    from users`.execute(t.system.db);
  expect(counts.rows).toEqual([{ users: rows, right: rows }]);
}

describe.concurrent('a connection to Postgres that goes silent', () => {
  // proves: silent-postgres
  test('a load is complete and exact 30 s after its connection went silent during the COPY of a chunk', async () => {
    const { t, proxy } = await openBehindProxy({ worker: true });
    for (const plan of ['free', 'pro']) {
      // The first load copies new users directly into their table. The second load copies existing
      // users into a temporary table.
      const silent = proxy.silenceAfter('from stdin', 10_000);
      const jobId = await accept(t, t.system, plan);
      await silent;
      await expectLoaded(t, jobId, plan);
    }
  });

  test('a load completes after all idle connections went silent, also with its queue in Postgres', async () => {
    const { t, proxy, system } = await openBehindProxy({ worker: true });
    await expectLoaded(t, await accept(t, system, 'free'), 'free');
    proxy.silence();
    const silentSince = performance.now();
    await expectLoaded(t, await accept(t, system, 'pro'), 'pro');
    expect(performance.now() - silentSince).toBeLessThan(mendedMs);
  });

  test('an export whose connection goes silent starts again and completes, and its snapshot is released', async () => {
    const { t, proxy, system } = await openBehindProxy({ worker: true });
    await expectLoaded(t, await accept(t, system, 'free'), 'free');
    const silent = proxy.silenceAfter('to stdout', 100_000);
    const work = await acceptExport(t.system, t.environment.environmentId, { event_type: ['users'] });
    await silent;
    const silentSince = performance.now();
    const exportJob = await waitFor(
      'the export to end',
      async () => {
        const current = await work.look();
        return ['completed', 'failed'].includes(current.status) ? current : null;
      },
      { timeoutMs: mendedMs },
    );
    expect(exportJob).toMatchObject({ status: 'completed', rowsWritten: rows });
    expect(performance.now() - silentSince).toBeLessThan(mendedMs);
    const { rows: sessions } = await sql`
      select application_name from pg_stat_activity
      where datname = current_database() and application_name like 'sluice export%'`.execute(t.system.db);
    expect(sessions).toEqual([]);
  });

  test('identify, track and companies are answered within 12 s after connections went silent, health reports it, and accepted records are stored once', async () => {
    const { t, proxy, system } = await openBehindProxy();
    const server = await serve({ ...t, system });
    cleanups.push(() => server.stop());
    const requests = (n: number) => ({
      '/v1/identify': { user_id: `u${n}`, metadata: { n: String(n) } },
      '/v1/track': { user_id: `u${n}`, event_name: 'seen', event_id: `e${n}` },
      '/v1/companies/identify': { company_id: `c${n}`, metadata: { n: String(n) } },
    });
    const send = async (path: string, record: object) => {
      const sentAt = performance.now();
      const { status } = await server.json(path, {
        method: 'POST',
        body: JSON.stringify(record),
        headers: { 'content-type': 'application/json' },
      });
      return { path, record, status, tookMs: performance.now() - sentAt };
    };
    const sendAll = (n: number) => Promise.all(Object.entries(requests(n)).map(([path, r]) => send(path, r)));
    await Promise.all(Array.from({ length: 20 }, (_, n) => sendAll(n)));
    proxy.silence();
    const silentSince = performance.now();
    const healthStatuses = new Set<number>();
    const health = startPoller(100, async () => {
      healthStatuses.add((await server.fetch('/health/ready', { key: null })).status);
    });
    const answers: ReturnType<typeof sendAll>[] = [];
    let n = 20;
    let isMended = false;
    while (!isMended) {
      expect(performance.now() - silentSince).toBeLessThan(mendedMs);
      const answer = sendAll(n++);
      answers.push(answer);
      const soon = await Promise.race([answer, delay(500)]);
      isMended = Array.isArray(soon) && soon.every(({ status }) => status === 202);
    }
    const all = (await Promise.all(answers)).flat();
    await health.stop();
    expect(healthStatuses).toEqual(new Set([200, 503]));
    // For a moment, the pool may still use a silent connection that it has not yet detected.
    await waitFor(
      'the server to be ready again',
      async () => (await server.fetch('/health/ready', { key: null })).status === 200,
      { timeoutMs: mendedMs },
    );
    expect(new Set(all.map(({ status }) => status))).toEqual(new Set([202, 503]));
    expect(Math.max(...all.map(({ tookMs }) => tookMs))).toBeLessThan(12_000);
    // A client must repeat a request that got status 503.
    for (const { path, record, status } of all) {
      if (status === 503) expect((await send(path, record)).status).toBe(202);
    }
    const { rows: counts } = await sql`
      select
        (select count(*)::int from users) as users,
        (select count(*)::int from companies) as companies,
        (select count(*)::int from events) as events,
        (select count(distinct event_id)::int from events) as "differentEvents"`.execute(t.system.db);
    expect(counts).toEqual([{ users: n, companies: n, events: n, differentEvents: n }]);
  });
});

describe.concurrent('the monitor', () => {
  test('the monitor ends a session that waits for its client, with its transaction, before the caller learns of it', async () => {
    const { pool, direct, proxy } = await openPool();
    const client = await pool.connect();
    const { rows: me } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
    await client.query('begin; create table public.t ()');
    proxy.silence();
    const lostQuery = client.query('select 1').catch((error: Error) => error);
    expect(await lostQuery).toMatchObject({ code: 'ETIMEDOUT' });
    const { rows: sessions } = await direct.query('select from pg_stat_activity where pid = $1', [
      me[0]?.pid,
    ]);
    expect(sessions).toEqual([]);
    client.release();
    // The table is missing, because the transaction that created it was not committed.
    expect((await pool.query("select to_regclass('public.t') as t")).rows).toEqual([{ t: null }]);
  });

  test('the monitor leaves a COPY alone that is read slowly', async () => {
    const { pool } = await openPool();
    const client = await pool.connect();
    const stream = client.query(
      copyTo("copy (select repeat('x', 999) from generate_series(1, 20000)) to stdout"),
    );
    let bytes = 0;
    for await (const chunk of stream) {
      if (bytes === 0) await delay(9_000);
      bytes += (chunk as Buffer).length;
    }
    expect(bytes).toBe(20_000_000);
    client.release();
  });

  test('the monitor leaves statements alone that run long or wait for a lock', async () => {
    const { pool, direct } = await openPool();
    await direct.query('create table public.t ()');
    await direct.query('begin; lock table public.t');
    const slept = pool.query('select pg_sleep(11)');
    const locked = pool.query('drop table public.t');
    await delay(11_000);
    await direct.query('commit');
    expect((await slept).rowCount).toBe(1);
    expect((await locked).command).toBe('DROP');
  });

  test('the server ends a statement whose process is gone, though it waits for a lock', async () => {
    const { url, pool, direct, proxy } = await openPool();
    await direct.query('create table public.t ()');
    const holder = await connect(url);
    await holder.query('begin; lock table public.t');
    const lost = pool.query('drop table public.t').catch((error: Error) => error);
    await waitFor('the statement to wait', async () => (await waiting(direct)) === 1);
    proxy.cut();
    expect(await lost).toBeInstanceOf(Error);
    await waitFor('the server to notice', async () => (await waiting(direct)) === 0, { timeoutMs: 5_000 });
    await holder.query('commit');
    await direct.query('select from public.t');
  });
});

// proves: reset-connection
test('a connection that is lost while it is idle ends no process, with or without a listener on its pool', async () => {
  const uncaught: unknown[] = [];
  const note = (error: unknown) => void uncaught.push(error);
  process.on('uncaughtExceptionMonitor', note);
  const { url } = await createTestDatabase();
  const pool = createPool({ url, max: 1, applicationName: 'test' });
  cleanups.push(() => pool.end());
  const { rows } = await pool.query<{ pid: number }>('select pg_backend_pid() as pid');
  const direct = await connect(url);
  await direct.query('select pg_terminate_backend($1)', [rows[0]?.pid]);
  await waitFor('the pool to notice', () => pool.totalCount === 0);
  expect((await pool.query('select 1')).rowCount).toBe(1);
  process.off('uncaughtExceptionMonitor', note);
  expect(uncaught).toEqual([]);
});

// proves: dead-server
test('a statement of a server that died does not overwrite records that were acknowledged later', async () => {
  const { t, proxy, system: dying } = await openBehindProxy();
  const { environmentId } = t.environment;
  const write = ({ ingest }: System, n: number, plan: string) =>
    ingest.identifyUser(
      {
        environmentId,
        marked: false,
        bytes: 1,
        userId: `u${n}`,
        companyId: null,
        properties: { plan },
        company: {},
      },
      null,
    );
  const numbers = [1, 2, 3, 4, 5, 6];
  await Promise.all(numbers.map((n) => write(t.system, n, 'first')));
  const holder = await connect(t.databaseUrl);
  // Each of the two lanes for users runs one statement at a time. The lock on u1 stops one lane and
  // the lock on u2 stops the other, so no record of the dying server is stored yet.
  await holder.query("begin; select from sluice.users where user_id in ('u1', 'u2') for update");
  const lost = Promise.all(numbers.map((n) => write(dying, n, 'of the dead')));
  const direct = await connect(t.databaseUrl);
  await waitFor('its statements to wait', async () => (await waiting(direct)) === 2);
  proxy.cut();
  await expect(lost).rejects.toThrow();
  await Promise.all([3, 4, 5, 6].map((n) => write(t.system, n, 'acknowledged')));
  await waitFor('the server to notice', async () => (await waiting(direct)) === 0, { timeoutMs: 5_000 });
  await holder.query('commit');
  const { rows: plans } = await direct.query(
    "select metadata ->> 'plan' as plan, count(*)::int from sluice.users group by 1 order by 1",
  );
  expect(plans).toEqual([
    { plan: 'acknowledged', count: 4 },
    { plan: 'first', count: 2 },
  ]);
});

async function waiting(direct: pg.Client): Promise<number> {
  const { rows: counts } = await direct.query<{ count: number }>(
    "select count(*)::int from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
  );
  return counts[0]?.count ?? 0;
}

/** Opens a pool that connects through a proxy, and one connection that bypasses the proxy. */
async function openPool() {
  const database = await createTestDatabase();
  cleanups.push(() => database.drop());
  const { url } = database;
  const proxy = await startPostgresProxy(url);
  cleanups.push(() => proxy.close());
  const monitor = new ConnectionMonitor({ url: proxy.url, log: pino({ level: 'silent' }) });
  const pool = createPool({ url: proxy.url, max: 4, applicationName: 'test', monitor });
  cleanups.push(async () => {
    await pool.end();
    monitor.close();
  });
  return { url, pool, proxy, direct: await connect(url) };
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  cleanups.push(() => client.end());
  return client;
}
