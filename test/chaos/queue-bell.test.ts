import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { createQueueBackend } from '../../src/queue/backend.ts';
import { consume } from '../../src/queue/consume.ts';
import { createQueueBell } from '../../src/queue/queue-bell.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { redisAvailable, startRedis } from '../support/redis.ts';
import { waitFor } from '../support/wait-for.ts';

test.skipIf(!redisAvailable)(
  'while the queue does not answer a ring fails at once, and none pile up until it does',
  async () => {
    const redis = await startRedis();
    const backend = createQueueBackend({ databaseUrl: 'unused', redisUrl: redis.url });
    const bell = createQueueBell(backend, () => undefined);
    try {
      await bell.ringFinish(1, 0);
      await redis.kill();
      await expect(bell.ringFinish(1, 1)).rejects.toThrow('the queue does not answer');
      const startedAt = performance.now();
      for (let ring = 0; ring < 20; ring++) {
        await expect(bell.ringFinish(1, 2 + ring)).rejects.toThrow('the queue does not answer');
      }
      expect(performance.now() - startedAt).toBeLessThan(1_000);
      await redis.start();
      await waitFor('the bell to work again', () => bell.ringFinish(1, 100).then(() => true));
    } finally {
      await bell.close();
      await backend.close();
      await redis.stop();
    }
  },
);

test.each([
  ['refuses connections', 'allow_connections false', 'allow_connections true'],
  ['has none left', 'connection limit 0', 'connection limit -1'],
])(
  'a worker and a bell that are made while Postgres %s work as soon as it lets them in',
  async (_, away, back) => {
    const database = await createTestDatabase();
    const backend = createQueueBackend({ databaseUrl: database.url, redisUrl: null });
    const errors: Error[] = [];
    const ended: number[] = [];
    await database.alter(away);
    const bell = createQueueBell(backend, () => undefined);
    const consumer = consume(
      backend,
      {
        'process-chunk': async () => undefined,
        'finish-load': async ({ loadId }) => void ended.push(loadId),
        'prune-files': async () => undefined,
      },
      {
        concurrency: 1,
        log: pino({ level: 'warn' }, { write: (line) => void errors.push(JSON.parse(line)) }),
      },
    );
    try {
      await waitFor('the worker to fail', () => errors.length > 0);
      // It must neither keep everything else from running nor fill the log meanwhile.
      await expect(bell.ringFinish(1, 0)).rejects.toThrow();
      const noted = errors.length;
      await sleep(1_000);
      expect(errors.length - noted).toBeLessThan(5);
      await database.alter(back);
      await waitFor('the bell to ring', () => bell.ringFinish(2, 0).then(() => true));
      await waitFor('the worker to take the job', () => ended.includes(2));
    } finally {
      await consumer.close();
      await bell.close();
      await backend.close();
      await database.drop();
    }
  },
);
