import type { JobsOptions, Queue } from 'bullmq';
import { TransientError } from '../domain/errors.ts';
import type { ExportBell } from '../export/context.ts';
import type { Bell, RingManner } from '../load/context.ts';
import type { QueueBackend } from './backend.ts';
import { exportQueueName, type JobName, type JobPayloads, queueName } from './contract.ts';

/** A ring that takes longer than this is given up; the reconciler rings again. */
const ringTimeoutMs = 5_000;
/** While one ring hangs no other is tried for this long. */
const askAgainMs = 30_000;
const chunksPerCall = 250;
/** Ringing again within this time adds nothing. */
const ringAgainMs = 5_000;

export interface QueueBell extends Bell, ExportBell {
  close(): Promise<void>;
}

/**
 * Rings by adding a job. Job ids are made from what is due, so that ringing twice adds one job; a new attempt has
 * a new id. Jobs leave no trace when done: what happened stands in the ledger. So does what comes first: whoever takes a job
 * of the lanes, an export or a delivery does what is next there (`next-tasks.ts`), and a job's place in the queue means nothing.
 */
export function createQueueBell(backend: QueueBackend, onError: (error: Error) => void): QueueBell {
  const [queue, exportQueue] = [queueName, exportQueueName].map((name) => {
    const opened = backend.createQueue(name, {
      defaultJobOptions: { attempts: 1, removeOnComplete: true, removeOnFail: true },
    });
    opened.on('error', onError);
    return opened;
  }) as [Queue, Queue];
  const inTime = createPatience();
  return {
    async ringChunks(loadId, chunks, manner = 'once') {
      for (let at = 0; at < chunks.length; at += chunksPerCall) {
        const jobs = chunks
          .slice(at, at + chunksPerCall)
          .map(({ chunkNo, attempt }) =>
            job(
              'process-chunk',
              { v: 1, loadId, chunkNo },
              { jobId: `chunk-${loadId}-${chunkNo}-${attempt}${turn(manner)}` },
            ),
          );
        await inTime(() => queue.addBulk(jobs));
      }
    },
    async ringFinish(loadId, attempt, manner = 'once') {
      const { name, data, opts } = job(
        'finish-load',
        { v: 1, loadId },
        { jobId: `finish-${loadId}-${attempt}${turn(manner)}` },
      );
      await inTime(() => queue.add(name, data, opts));
    },
    async ringDeletion(deletionId, attempt, manner = 'once') {
      const { name, data, opts } = job(
        'run-deletion',
        { v: 1, deletionId },
        { jobId: `deletion-${deletionId}-${attempt}${turn(manner)}` },
      );
      await inTime(() => queue.add(name, data, opts));
    },
    async ringExport(exportId, attempt, manner = 'once') {
      const { name, data, opts } = job(
        'run-export',
        { v: 1, exportId },
        { jobId: `export-${exportId}-${attempt}${turn(manner)}` },
      );
      await inTime(() => exportQueue.add(name, data, opts));
    },
    async ringDeliveries(due) {
      const jobs = due.map(({ deliveryId, attempt }) =>
        job(
          'deliver-notification',
          { v: 1, deliveryId },
          { jobId: `delivery-${deliveryId}-${attempt}`, lifo: true },
        ),
      );
      await inTime(() => queue.addBulk(jobs));
    },
    async close() {
      await queue.close();
      await exportQueue.close();
    },
  };
}

/** A job that a worker took along when it died keeps its id until the queue notices; another id is needed meanwhile. */
function turn(manner: RingManner): string {
  return manner === 'once' ? '' : `-${Math.floor(Date.now() / ringAgainMs)}`;
}

function job<N extends JobName>(name: N, data: JobPayloads[N], opts: JobsOptions) {
  return { name, data, opts };
}

/**
 * Bounds how long a ring may take, and how many hang in a queue that does not answer: clients keep what they cannot
 * send, and would send all of it at once when the queue is back.
 */
function createPatience(): <T>(ring: () => Promise<T>) => Promise<T> {
  let overdue: Promise<unknown> | null = null;
  let askAgainAt = 0;
  return async (ring) => {
    if (overdue !== null && performance.now() < askAgainAt) throw new TransientError(silent);
    const answer = ring();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        const settled = answer.then(nothing, nothing).then(() => {
          if (overdue === settled) overdue = null;
        });
        overdue = settled;
        askAgainAt = performance.now() + askAgainMs;
        reject(new TransientError(silent));
      }, ringTimeoutMs);
    });
    try {
      return await Promise.race([answer, late]);
    } finally {
      clearTimeout(timer);
    }
  };
}

const silent = 'the queue does not answer';
const nothing = (): void => undefined;
