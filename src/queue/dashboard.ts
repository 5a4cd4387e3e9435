import type { FastifyAdapter } from '@bull-board/fastify';
import { exportQueueName, queueName } from '../domain/task.ts';
import type { QueueBackend } from './backend.ts';

/** Pages that show the queues. They have no login of their own: whoever serves them sees to that. */
export interface QueueDashboard {
  /** For the address below which it is served. */
  readonly plugin: ReturnType<FastifyAdapter['registerPlugin']>;
  close(): Promise<void>;
}

/**
 * Opens it on queues of its own, on either backend. Its packages are loaded here and not before. Read-only: what is to be
 * done stands in the ledger, and a job that is removed or repeated by hand changes nothing there.
 */
export async function openDashboard(
  backend: QueueBackend,
  path: string,
  onError: (error: Error) => void,
): Promise<QueueDashboard> {
  const [{ createBullBoard }, { BullMQAdapter }, { FastifyAdapter: Adapter }] = await Promise.all([
    import('@bull-board/api'),
    import('@bull-board/api/bullMQAdapter'),
    import('@bull-board/fastify'),
  ]);
  const queues = [queueName, exportQueueName].map((name) => backend.createQueue(name, {}));
  for (const queue of queues) queue.on('error', onError);
  const serverAdapter = new Adapter();
  serverAdapter.setBasePath(path);
  createBullBoard({
    queues: queues.map((queue) => new BullMQAdapter(queue, { readOnlyMode: true })),
    serverAdapter,
    options: { uiConfig: { boardTitle: 'sluice' } },
  });
  return {
    plugin: serverAdapter.registerPlugin(),
    async close() {
      await Promise.all(queues.map((queue) => queue.close()));
    },
  };
}
