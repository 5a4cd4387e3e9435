import { mkdir, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { prepareDatabase } from '../../../src/queue/provide-database.ts';
import { collectLog } from '../../support/servers/collected-log.ts';
import { freezePostgres } from '../../support/servers/frozen-postgres.ts';
import { type ErrorBody, openServer, serversPerTest, type TestServer } from '../../support/servers/http.ts';
import { scrape } from '../../support/servers/metrics.ts';
import { type PrivatePostgres, startPrivatePostgres } from '../../support/servers/private-postgres.ts';
import { redisAvailable } from '../../support/servers/redis.ts';
import { openTestSystem } from '../../support/servers/system.ts';
import { waitFor } from '../../support/wait-for.ts';

/**
 * Maximum milliseconds of a health check: the limit of its slowest part, plus a margin for a busy
 * machine.
 */
const answersWithinMs = 2_500;

const { start, listen, cleanups } = serversPerTest();
const { t: shared, server: sharedServer } = await openServer();

let postgres: PrivatePostgres;
beforeAll(async () => {
  postgres = await startPrivatePostgres();
  await prepareDatabase(postgres.url, true, pino({ level: 'silent' }));
});
afterAll(() => postgres?.close());

/** Starts a server with its own PostgreSQL, which the test can stop. */
async function startOnPrivatePostgres() {
  const collected = collectLog();
  const system = await openTestSystem({ log: collected.log });
  cleanups.push(() => system.close());
  const other = system.openAnother({ databaseUrl: postgres.url });
  cleanups.push(() => other.close());
  const ofDatabase = () => collected.lines.filter((line) => line['part'] === 'database');
  return { server: await listen({ ...system, system: other }), ofDatabase };
}

interface Report {
  status: string;
  parts: { database: string; queue: string; storage: string };
}

async function probe(server: TestServer) {
  const startedAt = performance.now();
  const { status, headers, body } = await server.json<Report>('/health/ready', { key: null });
  return { status, body, retryAfter: headers.get('retry-after'), ms: performance.now() - startedAt };
}

const allOk = { database: 'ok', queue: 'ok', storage: 'ok' };
const without = (...parts: string[]) => ({
  ...allOk,
  ...Object.fromEntries(parts.map((part) => [part, 'away'])),
});

const ledger = (samples: ReadonlyMap<string, number>) =>
  [...samples.keys()].filter((name) =>
    /^sluice_(queue|loads|oldest|load_rows|reconcile|exports|deletions|running|workers)/.test(name),
  );

const untilReady = (server: TestServer) =>
  waitFor('the service to be ready', async () => (await probe(server)).body.status === 'ready');

test('a service whose parts all work is live and ready, and answers without a key', async () => {
  const server = sharedServer;
  const live = await server.json('/health/live', { key: null });
  expect([live.status, live.body]).toEqual([200, { status: 'live' }]);
  await untilReady(server);
  const ready = await probe(server);
  expect([ready.status, ready.body, ready.retryAfter]).toEqual([
    200,
    { status: 'ready', parts: allOk },
    null,
  ]);
});

test('a service that drains is not ready, still serves, and closes each connection after its answer', async () => {
  const { server } = await start({ settings: { DRAIN_MS: '1' } });
  const idle = await server.fetch('/health/live', { key: null });
  expect(idle.headers.get('connection')).not.toBe('close');
  await server.drain();
  const { status, body, retryAfter } = await probe(server);
  expect([status, body]).toEqual([503, { status: 'not_ready', parts: allOk }]);
  expect(Number(retryAfter)).toBeGreaterThan(0);
  for (const path of ['/health/live', '/v1/background_jobs']) {
    const { status: served, headers } = await server.fetch(path);
    expect([served, headers.get('connection')]).toEqual([200, 'close']);
  }
});

describe('a database', () => {
  test('a lost database makes the service not ready until it is back, is logged once, and leaves the metrics of other sources', async () => {
    const { server, ofDatabase } = await startOnPrivatePostgres();
    await untilReady(server);
    expect(ledger((await scrape(server)).samples)).not.toEqual([]);
    await postgres.stopImmediately();
    for (let again = 0; again < 3; again++) {
      const { status, body, retryAfter, ms } = await probe(server);
      expect([status, body]).toEqual([503, { status: 'not_ready', parts: without('database', 'queue') }]);
      expect(Number(retryAfter)).toBeGreaterThan(0);
      expect(ms).toBeLessThan(answersWithinMs);
    }
    expect((await server.fetch('/health/live', { key: null })).status).toBe(200);
    const refused = await server.json<ErrorBody>('/v1/background_jobs');
    expect([refused.status, refused.body.errors[0]?.error_code]).toEqual([503, 'unavailable']);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(JSON.stringify(refused.body)).not.toMatch(/connect|postgres|sql|127\.0/i);
    expect(ofDatabase()).toMatchObject([{ msg: 'the database is away', err: expect.anything() }]);
    const away = await waitFor('the metrics to miss the database', async () => {
      const { samples } = await scrape(server);
      return samples.get('sluice_database_up') === 0 && samples;
    });
    expect(ledger(away)).toEqual([]);
    expect([...away.keys()].some((name) => name.startsWith('sluice_http_requests_total'))).toBe(true);
    await postgres.start();
    await untilReady(server);
    await waitFor('the ledger to be back', async () => {
      const { samples } = await scrape(server);
      return samples.get('sluice_database_up') === 1 && ledger(samples).length > 0;
    });
    expect(ofDatabase()).toMatchObject([{}, { msg: 'the database is back', away_ms: expect.any(Number) }]);
  });

  test.skipIf(process.platform !== 'linux')(
    'a database that hangs makes the service not ready, and the answer and the metrics are in time',
    async () => {
      const { server } = await startOnPrivatePostgres();
      await untilReady(server);
      const thaw = await freezePostgres(postgres.url);
      cleanups.push(thaw);
      // The first probe uses an open connection that has gone silent. The second probe cannot open
      // a connection.
      for (let again = 0; again < 2; again++) {
        for (const { status, body, ms } of await Promise.all([probe(server), probe(server), probe(server)])) {
          expect([status, body.parts]).toEqual([503, without('database', 'queue')]);
          expect(ms).toBeLessThan(answersWithinMs);
        }
        const startedAt = performance.now();
        const { samples } = await scrape(server);
        expect(performance.now() - startedAt).toBeLessThan(answersWithinMs);
        expect(samples.get('sluice_database_up')).toBe(0);
      }
      thaw();
      await untilReady(server);
    },
  );

  test('a read-only database makes the service not ready', async () => {
    const { system, server } = await start();
    const name = new URL(system.databaseUrl).pathname.slice(1);
    await system.system.pool.query(`alter database ${name} set default_transaction_read_only = on`);
    const { status, body } = await probe(server);
    expect([status, body.parts.database]).toEqual([503, 'away']);
  });
});

describe('a queue', () => {
  test.skipIf(!redisAvailable)(
    'a lost Redis leaves the service usable and degraded, and the overview shows an unknown queue',
    async () => {
      const { system, server } = await start({ queue: 'redis' });
      await untilReady(server);
      const queue = async () =>
        (await server.json<{ queue: object }>('/v1/overview', { key: system.key })).body.queue;
      await system.system.queue.notify([{ taskId: 1, kind: 'finish', attempt: 0 }]);
      expect(await queue()).toMatchObject({ lives_in: 'redis', queues: [{ waiting: 1, active: 0 }, {}] });
      await system.redis?.kill();
      const degraded = { status: 'degraded', parts: without('queue') };
      await waitFor('the queue to be missed', async () => (await probe(server)).body.status === 'degraded');
      // The server already knows that the connection to Redis is lost, so the health check must not
      // wait for Redis. A prober usually allows only one second.
      await waitFor('an answer that waits for nothing', async () => {
        const { status, body, ms } = await probe(server);
        expect([status, body]).toEqual([200, degraded]);
        return ms < 500;
      });
      await waitFor(
        'it to be missed there too',
        async () => JSON.stringify(await queue()) === '{"lives_in":"redis","is_known":false,"queues":[]}',
      );
      await system.redis?.start();
      await untilReady(server);
    },
  );

  test('a queue that hangs is away, and a service that stops meanwhile is not ready', async () => {
    const system = await openTestSystem({ settings: { REDIS_URL: await startMuteServer() } });
    cleanups.push(() => system.close());
    let checks = 0;
    const check = () => {
      checks++;
      return system.system.health.check();
    };
    const server = await listen({ ...system, system: { ...system.system, health: { check } } });
    const { status, body, ms } = await probe(server);
    expect([status, body]).toEqual([200, { status: 'degraded', parts: without('queue') }]);
    expect(ms).toBeLessThan(1_000);
    const underWay = probe(server);
    await waitFor('another probe to be under way', () => checks === 2, { everyMs: 5 });
    const stopped = server.stop();
    const last = await underWay;
    expect([last.status, last.body.status]).toEqual([503, 'not_ready']);
    await stopped;
  });
});

describe('a storage', () => {
  test('a lost folder of files makes the service not ready until it is back', async () => {
    const [system, server] = [shared, sharedServer];
    await untilReady(server);
    await rm(system.config.filesDir, { recursive: true });
    const { status, body } = await probe(server);
    expect([status, body]).toEqual([503, { status: 'not_ready', parts: without('storage') }]);
    await mkdir(`${system.config.filesDir}/tmp`, { recursive: true });
    await untilReady(server);
  });
});

/** Starts a server that accepts connections but never responds. Returns its address. */
async function startMuteServer(): Promise<string> {
  const sockets = new Set<import('node:net').Socket>();
  const server = createServer((socket) => void sockets.add(socket.on('error', () => undefined)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `redis://127.0.0.1:${(server.address() as { port: number }).port}`;
}
