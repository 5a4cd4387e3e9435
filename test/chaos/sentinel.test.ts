import { expect, test } from 'vitest';
import { createProfileFile, oracleOf } from '../support/files/profile-file.ts';
import { expectExact, progressed, readLoad, report } from '../support/oracles/exactness.ts';
import { redisAvailable } from '../support/servers/redis.ts';
import { startSentinelRedis } from '../support/servers/redis-fleet.ts';
import { onSite } from '../support/servers/site.ts';
import { waitFor } from '../support/wait-for.ts';

// proves: sentinel
test.skipIf(!redisAvailable)(
  'a load continues with the next master of the queue when the first is lost, and is exact',
  async () => {
    const redis = await startSentinelRedis();
    try {
      await onSite({ queue: 'postgres', settings: { REDIS_URL: redis.url } }, async (site) => {
        const [api] = await Promise.all([site.serve(), site.workers(2)]);
        const file = createProfileFile({ rows: 30_000 });
        const jobId = await api.upload(file.bytes);
        await progressed(site.sql, jobId, 0.2);
        const [master = 0, replica = 0] = redis.ports;
        await redis.kill(master);
        const lostAt = performance.now();
        await waitFor('the replica to be the master', async () =>
          (await redis.look(replica).info('replication')).includes('role:master'),
        );
        const failoverMs = performance.now() - lostAt;
        const { status } = await readLoad(site.sql, jobId);
        // After the failover, most chunks are not merged yet, because without a queue workers get
        // no chunks.
        expect(status).toBe('processing');
        const load = await expectExact(site.sql, jobId, file, oracleOf(file));
        const again = createProfileFile({ rows: 1_000, seed: 2 });
        await expectExact(site.sql, await api.upload(again.bytes), again, oracleOf(file, again), {
          fresh: false,
        });
        const ready = await api.fetch('/health/ready');
        expect(await ready.json()).toMatchObject({ parts: { queue: 'ok' } });
        report(
          `master of the queue lost: the next one after ${(failoverMs / 1000).toFixed(1)} s, load done in ${load.seconds.toFixed(1)} s`,
        );
        const output = [api.process.output].join('');
        expect(output).not.toContain('hidden-');
      });
    } finally {
      await redis.stop();
    }
  },
);
