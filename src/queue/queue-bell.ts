import type { JobsOptions, Queue } from 'bullmq';
import { TransientError } from '../domain/errors.ts';
import type { Bell } from '../load/context.ts';
import type { QueueBackend } from './backend.ts';
import { type JobName, type JobPayloads, queueName } from './contract.ts';

/** A ring that takes longer than this is given up; the reconciler rings again. */
const ringTimeoutMs = 5_000;
const chunksPerCall = 250;
/** Loads of so few chunks go to the head of the queue, so that a small array need not wait behind a large file. */
const smallLoad = 2;

export interface QueueBell extends Bell {
  close(): Promise<void>;
}

/**
 * Rings by adding a job. Job ids are made from what is due, so that ringing twice adds one job; a new attempt has
 * a new id. Jobs leave no trace when done: what happened stands in the ledger.
 */
export function createQueueBell(backend: QueueBackend, onError: (error: Error) => void): QueueBell {
  const queue = backend.createQueue(queueName, {
    defaultJobOptions: { attempts: 1, removeOnComplete: true, removeOnFail: true },
  });
  queue.on('error', onError);
  return {
    async ringChunks(loadId, chunks) {
      const isSmall = chunks.length <= smallLoad;
      for (let at = 0; at < chunks.length; at += chunksPerCall) {
        const jobs = chunks
          .slice(at, at + chunksPerCall)
          .map(({ chunkNo, attempt }) =>
            job(
              'process-chunk',
              { v: 1, loadId, chunkNo },
              // A chunk that was begun before has waited already: for the lease of the worker it lost.
              { jobId: `chunk-${loadId}-${chunkNo}-${attempt}`, lifo: isSmall || attempt > 0 },
            ),
          );
        await inTime(queue.addBulk(jobs));
      }
    },
    async ringFinish(loadId, attempt) {
      const { name, data, opts } = job(
        'finish-load',
        { v: 1, loadId },
        { jobId: `finish-${loadId}-${attempt}`, lifo: true },
      );
      await inTime((queue as Queue).add(name, data, opts));
    },
    close: () => queue.close(),
  };
}

function job<N extends JobName>(name: N, data: JobPayloads[N], opts: JobsOptions) {
  return { name, data, opts };
}

async function inTime<T>(ring: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new TransientError('the queue does not answer')), ringTimeoutMs);
  });
  try {
    return await Promise.race([ring, late]);
  } finally {
    clearTimeout(timer);
  }
}
