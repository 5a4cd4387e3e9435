import { describe, expect, test } from 'vitest';
import { expectExact, progressed, readLoad, report } from '../support/exactness.ts';
import { createProfileFile, oracleOf } from '../support/profile-file.ts';
import { redisAvailable, type TestRedis } from '../support/redis.ts';
import { onSite, type Site } from '../support/site.ts';

const file = createProfileFile({ rows: 50_000 });
const table = oracleOf(file);
/** The ledger answers for Redis: what it needs to accept a load is its own. */
const quickMs = 3_000;

describe.skipIf(!redisAvailable)('with the queue on redis', { concurrent: true }, () => {
  // proves: load-survives
  test('a load is exact although Redis is emptied in the middle, twice', async () => {
    await onRedis(async (site, redis) => {
      const [api] = await Promise.all([site.serve(), site.workers(2)]);
      const jobId = await api.upload(file.bytes);
      for (const share of [0.2, 0.6]) {
        await progressed(site.sql, jobId, share);
        await redis.flush();
      }
      const load = await expectExact(site.sql, jobId, file, table);
      report(`Redis flushed twice: load ${load.seconds.toFixed(1)} s`);
    });
  });

  // proves: load-survives
  test('a load is exact although Redis is killed in the middle and comes back empty', async () => {
    await onRedis(async (site, redis) => {
      const [api] = await Promise.all([site.serve(), site.workers(2)]);
      const jobId = await api.upload(file.bytes);
      await progressed(site.sql, jobId, 0.3);
      await redis.kill();
      expect((await readLoad(site.sql, jobId)).status).toBe('processing');
      await redis.start();
      const load = await expectExact(site.sql, jobId, file, table);
      report(`Redis killed and restarted empty: load ${load.seconds.toFixed(1)} s`);
    });
  });

  test('a load that comes while Redis is away is accepted at once, and is exact when Redis is back', async () => {
    await onRedis(async (site, redis) => {
      const [api] = await Promise.all([site.serve(), site.workers(2)]);
      await redis.kill();
      const sentAt = performance.now();
      const jobId = await api.upload(file.bytes);
      const answeredMs = performance.now() - sentAt;
      expect((await readLoad(site.sql, jobId)).chunks_done).toBe(0);
      await redis.start();
      const backAt = performance.now();
      const load = await expectExact(site.sql, jobId, file, table);
      report(
        `Redis away: accepted in ${answeredMs.toFixed(0)} ms, completed ${((performance.now() - backAt) / 1000).toFixed(1)} s after its return (${load.seconds.toFixed(1)} s in all)`,
      );
      expect(answeredMs).toBeLessThan(quickMs);
    });
  });
});

async function onRedis(run: (site: Site, redis: TestRedis) => Promise<void>): Promise<void> {
  await onSite({ queue: 'redis' }, async (site) => {
    if (site.redis === null) throw new Error('the site has no Redis');
    await run(site, site.redis);
  });
}
