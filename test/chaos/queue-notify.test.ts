import { expect, test } from 'vitest';
import { createQueueBackend } from '../../src/queue/backend.ts';
import { createQueueNotifier } from '../../src/queue/notify.ts';
import { redisAvailable, startRedis } from '../support/redis.ts';
import { waitFor } from '../support/wait-for.ts';

const task = (taskId: number, attempt: number) => ({ taskId, kind: 'finish', attempt }) as const;

test.skipIf(!redisAvailable)(
  'while the queue does not answer a notification fails at once, and none pile up until it does',
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
