import { afterEach, describe, expect, test } from 'vitest';
import { readConfig } from '../../src/base/config.ts';
import { findRedisFault } from '../../src/telemetry/health/checks.ts';
import { createCertificates, type TestCertificates } from '../support/servers/certificates.ts';
import { serve } from '../support/servers/http.ts';
import { redisAvailable } from '../support/servers/redis.ts';
import { startClusterRedis, startTlsRedis } from '../support/servers/redis-fleet.ts';
import { openTestSystem } from '../support/servers/system.ts';
import { waitFor } from '../support/wait-for.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/**
 * Uploads a file and waits until a worker has loaded it. This proves that one process can write to
 * the queue and another read from it.
 */
async function loadThrough(settings: Readonly<Record<string, string>>): Promise<void> {
  const system = await openTestSystem({ queue: 'postgres', worker: true, settings });
  const server = await serve(system);
  try {
    expect(system.system.backend.kind).toBe('redis');
    const { body } = await server.json<{ job_id: string }>('/v1/imports', {
      method: 'POST',
      body: 'user_id,plan\na,1\nb,2\n',
      headers: { 'content-type': 'text/csv' },
    });
    expect(await system.ended(body.job_id)).toMatchObject({ status: 'completed', tally: { inserted: 2 } });
    // On a busy machine, one response of the queue may come too late.
    await waitFor('the queue to be well', async () => {
      const { body } = await server.json<{ status: string; parts: { queue: string } }>('/health/ready');
      return body.status === 'ready' && body.parts.queue === 'ok';
    });
  } finally {
    await server.stop();
    await system.close();
  }
}

describe.skipIf(!redisAvailable)('REDIS_URL', () => {
  test('a load passes a Redis with TLS whose certificate is signed by REDIS_TLS_CA, and no other', async () => {
    const [certificates, others] = await Promise.all([certificatesOfTest(), certificatesOfTest()]);
    const redis = await startTlsRedis(certificates);
    cleanups.push(() => redis.stop());
    const check = (REDIS_URL: string, REDIS_TLS_CA: string) =>
      findRedisFault(readConfig({ REDIS_URL, REDIS_TLS_CA }));
    expect(await check(redis.url, certificates.caFile)).toBeNull();
    expect(await check(redis.url, '')).toMatchObject({ away: true });
    expect(await check(redis.url, others.caFile)).toMatchObject({ away: true });
    // The certificate is valid for `localhost` only.
    const byAddress = redis.url.replace('localhost', '127.0.0.1');
    expect(await check(byAddress, certificates.caFile)).toMatchObject({ away: true });
    await loadThrough({ REDIS_URL: redis.url, REDIS_TLS_CA: certificates.caFile });
  });

  test.each([['redis'], ['rediss']])(
    'a load passes a Redis cluster (%s), and each queue has its node',
    async (scheme) => {
      const certificates = scheme === 'redis' ? null : await certificatesOfTest('IP:127.0.0.1');
      const cluster = await startClusterRedis(certificates);
      cleanups.push(() => cluster.stop());
      const settings = { REDIS_URL: cluster.url, REDIS_TLS_CA: certificates?.caFile ?? '' };
      expect(await findRedisFault(readConfig(settings))).toBeNull();
      await loadThrough(settings);
      const keys = await Promise.all(cluster.ports.map((port) => cluster.look(port).keys('*:meta')));
      expect(keys.flat().sort()).toEqual([
        '{bull:sluice-exports}:sluice-exports:meta',
        '{bull:sluice}:sluice:meta',
      ]);
      for (const port of cluster.ports) await cluster.kill(port);
      const problem = await waitFor('the cluster to be missed', () => findRedisFault(readConfig(settings)));
      expect(problem).toMatchObject({ away: true, sentence: expect.stringContaining('(cluster)') });
    },
  );
});

async function certificatesOfTest(names?: string): Promise<TestCertificates> {
  const certificates = await createCertificates(names);
  cleanups.push(() => certificates.remove());
  return certificates;
}
