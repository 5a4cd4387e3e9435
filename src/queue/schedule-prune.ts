import type { QueueBackend } from './backend.ts';
import { type JobPayloads, queueName } from './contract.ts';

const everyMs = 24 * 60 * 60 * 1000;

/**
 * Asks the queue for one `prune-files` a day, however many workers ask: they all name the same scheduler. After a
 * pause longer than a day it is due at once.
 */
export async function schedulePrune(backend: QueueBackend): Promise<void> {
  const queue = backend.createQueue(queueName, {});
  queue.on('error', () => undefined);
  try {
    const data: JobPayloads['prune-files'] = { v: 1 };
    const opts = { attempts: 1, removeOnComplete: true, removeOnFail: true };
    await queue.upsertJobScheduler('prune-files', { every: everyMs }, { name: 'prune-files', data, opts });
  } finally {
    await queue.close();
  }
}
