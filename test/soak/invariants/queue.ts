import { exportQueueName, queueName } from '../../../src/domain/task.ts';
import { createQueueBackend } from '../../../src/queue/backend.ts';
import { until } from '../patience.ts';
import type { Invariant } from './invariant.ts';

/** A job lost with its worker is taken up by another: its lock of ten seconds must run out, and somebody look. */
const timeoutMs = 40_000;

export const queueIsDone: Invariant = {
  name: 'no job of the queue is stuck',
  async look({ site }) {
    const backend = createQueueBackend({ databaseUrl: site.databaseUrl, redisUrl: site.redis?.url ?? null });
    const queues = [queueName, exportQueueName].map((name) => backend.createQueue(name, {}));
    for (const queue of queues) queue.on('error', () => undefined);
    let stuck: readonly string[] = ['the queue could not be read'];
    await until(
      async () => {
        const counts = await Promise.all(
          queues.map((queue) => queue.getJobCounts('active', 'waiting', 'prioritized')),
        );
        stuck = counts.flatMap((count, at) =>
          Object.entries(count).flatMap(([state, jobs]) =>
            jobs > 0 ? [`${jobs} jobs of ${queues[at]?.name} are ${state}`] : [],
          ),
        );
        return stuck.length === 0 ? true : null;
      },
      { timeoutMs, everyMs: 250 },
    );
    await Promise.all(queues.map((queue) => queue.close()));
    await backend.close();
    return stuck;
  },
};
