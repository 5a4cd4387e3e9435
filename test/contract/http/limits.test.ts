import Fastify from 'fastify';
import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { createApiKey, revokeApiKey } from '../../../src/access/key-store.ts';
import { readConfig } from '../../../src/base/config.ts';
import { addLoadShedding } from '../../../src/http/plugins/limits.ts';
import { collectLog } from '../../support/servers/collected-log.ts';
import { type ErrorBody, serversPerTest } from '../../support/servers/http.ts';
import type { openTestSystem } from '../../support/servers/system.ts';
import { waitFor } from '../../support/wait-for.ts';

const { start: startServer, cleanups } = serversPerTest();

async function start(options: Parameters<typeof openTestSystem>[0] = {}) {
  const { system, server } = await startServer(options);
  const issue = () => createApiKey(system.system.db, system.environment.environmentId, { label: 'x' });
  return { system, server, issue };
}

const list = '/v1/background_jobs';

describe('a rate limit', () => {
  // A window that is longer than any test takes.
  const settings = { RATE_LIMIT: '3/10s' };

  test('a rate limit reports the remaining requests of a key, and after them the time to wait', async () => {
    const { server, issue } = await start({ settings });
    for (const remaining of ['2', '1', '0']) {
      const { status, headers } = await server.fetch(list);
      expect([status, headers.get('ratelimit-limit'), headers.get('ratelimit-remaining')]).toEqual([
        200,
        '3',
        remaining,
      ]);
      expect(headers.get('ratelimit-reset')).toMatch(/^([1-9]|10)$/);
    }
    const { status, headers, body } = await server.json<ErrorBody>(list);
    expect([status, body.errors[0]?.error_code]).toEqual([429, 'rate_limited']);
    expect(headers.get('retry-after')).toMatch(/^([1-9]|10)$/);
    expect(headers.get('ratelimit-remaining')).toBe('0');
    expect((await server.fetch(list, { key: (await issue()).key })).status).toBe(200);
    await waitFor('the key to be let in again', async () => (await server.fetch(list)).ok, { everyMs: 100 });
  });

  test('a rate limit counts each request of a burst that arrives before its key is known', async () => {
    const { server, issue } = await start({ settings });
    const { key } = await issue();
    const connection = await server.connect();
    const head = ['POST /v1/track HTTP/1.1', 'host: x', `authorization: Token ${key}`, 'content-length: 0'];
    // All five requests arrive together, so they all wait for the same lookup of their key.
    await connection.write(`${head.join('\r\n')}\r\n\r\n`.repeat(5));
    await connection.until(/(?:HTTP\/1\.1.*?){5}/s);
    const statuses = [...connection.received.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);
    expect(statuses).toEqual(['400', '400', '400', '429', '429']);
    const remaining = [...connection.received.matchAll(/ratelimit-remaining: (\d+)/g)].map(
      ([, count]) => count,
    );
    expect(remaining).toEqual(['2', '1', '0', '0', '0']);
  });

  test('a rate limit counts a key on all routes together', async () => {
    const { server } = await start({ settings });
    for (const path of [list, `${list}?limit=1`, `${list}/01a1f879-8845-7223-9ca4-ceafb3823817`]) {
      expect((await server.fetch(path)).status).not.toBe(429);
    }
    expect((await server.fetch('/v1/track', { method: 'POST', body: '{}' })).status).toBe(429);
  });

  test('a rate limit holds neither requests without a key nor health checks and metrics', async () => {
    const { server } = await start({ settings });
    for (let again = 0; again < 6; again++) {
      const { status, headers } = await server.fetch(list, { key: null });
      expect([status, headers.get('ratelimit-limit')]).toEqual([401, null]);
      for (const path of ['/health/live', '/metrics']) expect((await server.fetch(path)).status).toBe(200);
    }
  });
});

describe('an event loop that lags', () => {
  /**
   * Keeps this process, which includes the server, busy most of the time, until the returned
   * function is called.
   */
  function blockLoop(): () => void {
    const timer = setInterval(() => {
      const until = performance.now() + 250;
      while (performance.now() < until);
    }, 1);
    const end = () => clearInterval(timer);
    cleanups.push(end);
    return end;
  }

  test('a lagging event loop refuses requests until it has recovered, and answers health checks and metrics', async () => {
    const { log, lines } = collectLog();
    const { server } = await start({ settings: { MAX_EVENT_LOOP_DELAY_MS: '100' }, log });
    expect((await server.fetch(list)).status).toBe(200);
    const unblock = blockLoop();
    // The request must be refused before its key is looked up.
    const options = { key: 'slk_unknown' };
    const refused = await waitFor('a refusal', async () => {
      const answer = await server.json<ErrorBody>(list, options);
      return answer.status === 503 && answer;
    });
    expect(refused.body.errors[0]).toMatchObject({ error: 'Service Unavailable', error_code: 'unavailable' });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    for (const path of ['/health/live', '/metrics']) {
      expect([path, (await server.fetch(path, { key: null })).status]).toEqual([path, 200]);
    }
    // Checks only that there is a response. A process that lags may report parts as unavailable.
    expect((await server.json('/health/ready')).body).toHaveProperty('parts');
    unblock();
    await waitFor('recovery', async () => (await server.fetch(list)).ok);
    const messages = lines.filter(({ msg }) => String(msg).includes('overloaded')).map(({ msg }) => msg);
    expect(messages).toEqual(['overloaded: requests are refused', 'no longer overloaded']);
  });

  test('requests are served while the process has just started, because loading its code also blocks the loop', async () => {
    const { server } = await start({ settings: { MAX_EVENT_LOOP_DELAY_MS: '20' } });
    const until = performance.now() + 1_500;
    const unblock = blockLoop();
    while (performance.now() < until) expect((await server.fetch(list)).status).toBe(200);
    await waitFor('a refusal', async () => (await server.fetch(list)).status === 503);
    unblock();
  });
});

test('a nearly full heap refuses requests', async () => {
  const app = Fastify();
  cleanups.push(() => app.close());
  const heapLimit = 1;
  addLoadShedding(app, { config: readConfig({}), log: pino({ level: 'silent' }) }, heapLimit);
  app.get('/', () => 'served');
  const address = await app.listen({ host: '127.0.0.1', port: 0 });
  await waitFor('a refusal', async () => (await fetch(address)).status === 503);
});

describe('the cache of keys', () => {
  const track = { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } };

  test('a revoked key works for less than a second with single records, and not at all otherwise', async () => {
    const { system, server, issue } = await start();
    const { key, keyId } = await issue();
    // Status 400 shows that the key was accepted, because only the record is invalid.
    const isAccepted = async () => (await server.fetch('/v1/track', { ...track, key })).status === 400;
    expect([await isAccepted(), await isAccepted()]).toEqual([true, true]);
    await revokeApiKey(system.system.db, system.environment.environmentId, keyId);
    const revokedAt = performance.now();
    expect((await server.fetch(list, { key })).status).toBe(401);
    let lastSentAt = revokedAt;
    const isRefused = async (): Promise<boolean> => {
      const sentAt = performance.now();
      const isValid = await isAccepted();
      if (isValid) lastSentAt = sentAt;
      return !isValid;
    };
    await waitFor('the key to be refused', isRefused);
    expect(lastSentAt - revokedAt).toBeLessThan(1_000);
    expect((await server.fetch('/v1/track', { ...track, key })).status).toBe(401);
  });

  test('single records with a cached key need no database until the cache forgets the key', async () => {
    const { system, server, issue } = await start();
    const { key } = await issue();
    const other = await issue();
    expect((await server.fetch('/v1/track', { ...track, key })).status).toBe(400);
    await system.system.pool.query('alter table api_keys rename to gone');
    expect((await server.fetch('/v1/track', { ...track, key })).status).toBe(400);
    expect((await server.fetch('/v1/track', { ...track, key: other.key })).status).toBe(500);
    expect((await server.fetch(list, { key })).status).toBe(500);
    const forgotten = async () => (await server.fetch('/v1/track', { ...track, key })).status === 500;
    await waitFor('the key to be forgotten', forgotten, { timeoutMs: 3_000 });
  });
});
