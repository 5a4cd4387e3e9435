import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { createQueueBackend } from '../../src/queue/backend.ts';
import { consume, createQueueNotifier } from '../../src/queue/notify.ts';
import { createTestDatabase } from '../support/servers/postgres.ts';
import { redisAvailable, startRedis } from '../support/servers/redis.ts';
import { waitFor } from '../support/wait-for.ts';

const task = (taskId: number, attempt: number) => ({ taskId, kind: 'finish', attempt }) as const;

test.skipIf(!redisAvailable)(
  'while the queue does not answer, a message to it fails at once, and none pile up',
  async () => {
    const redis = await startRedis();
    const backend = createQueueBackend({ databaseUrl: 'unused', redisUrl: redis.url });
    const queue = createQueueNotifier(backend, () => undefined);
    try {
      await queue.notify([task(1, 0)]);
      await redis.kill();
      await expect(queue.notify([task(1, 1)])).rejects.toThrow('the queue does not answer');
      const startedAt = performance.now();
      for (let call = 0; call < 20; call++) {
        await expect(queue.notify([task(1, 2 + call)])).rejects.toThrow('the queue does not answer');
      }
      expect(performance.now() - startedAt).toBeLessThan(1_000);
      await redis.start();
      await waitFor('the queue to answer again', () => queue.notify([task(1, 100)]).then(() => true));
    } finally {
      await queue.close();
      await backend.close();
      await redis.stop();
    }
  },
);

test.each([
  ['refuses connections', 'allow_connections false', 'allow_connections true'],
  ['has no connection left', 'connection limit 0', 'connection limit -1'],
])(
  'a worker and a notifier that are created while Postgres %s work as soon as it accepts connections',
  async (_, away, back) => {
    const database = await createTestDatabase();
    const backend = createQueueBackend({ databaseUrl: database.url, redisUrl: null });
    const errors: Error[] = [];
    let jobCount = 0;
    await database.alter(away);
    const queue = createQueueNotifier(backend, () => undefined);
    const consumer = consume(
      backend,
      { finish: async () => void jobCount++ },
      {
        concurrency: 1,
        log: pino({ level: 'warn' }, { write: (line) => void errors.push(JSON.parse(line)) }),
      },
    );
    try {
      await waitFor('the worker to fail', () => errors.length > 0);
      // While the database of the queue refuses connections, a call to notify the queue must fail
      // instead of waiting, and the worker must not fill the log.
      await expect(queue.notify([task(1, 0)])).rejects.toThrow();
      const noted = errors.length;
      await sleep(1_000);
      expect(errors.length - noted).toBeLessThan(5);
      await database.alter(back);
      await waitFor('it to notify', () => queue.notify([task(2, 0)]).then(() => true));
      await waitFor('the worker to take the job', () => jobCount > 0);
    } finally {
      await consumer.close();
      await queue.close();
      await backend.close();
      await database.drop();
    }
  },
);
