import type { Job } from 'bullmq';
import type { Logger } from 'pino';
import { Fault } from '../domain/errors.ts';
import { queueName } from '../domain/task.ts';
import type { QueueBackend } from './backend.ts';
import type { JobHandlers, JobName, JobPayloads } from './notify.ts';

export interface Consumer {
  /** Takes no more jobs and waits for those under way. */
  close(): Promise<void>;
}

/**
 * Runs jobs from the queue. Locks are short, since a job that is lost with its worker costs nothing but another:
 * whether its work is due is the ledger's to say.
 */
export function consume(
  backend: QueueBackend,
  handlers: Partial<JobHandlers>,
  options: { readonly concurrency: number; readonly log: Logger; readonly queue?: string },
): Consumer {
  const worker = backend.createWorker(options.queue ?? queueName, (job) => run(handlers, job), {
    concurrency: options.concurrency,
    lockDuration: 10_000,
    stalledInterval: 5_000,
    maxStalledCount: 1_000_000,
    // After a refused connection; BullMQ's own 15 s would be the whole time in which work must have gone on.
    runRetryDelay: 1_000,
    removeOnComplete: { count: 0 },
    removeOnFail: { count: 0 },
  });
  worker.on('error', (error) => options.log.warn({ err: error }, 'queue worker error'));
  worker.on('failed', (job, error) => options.log.error({ err: error, job: job?.name }, 'job failed'));
  return { close: () => worker.close() };
}

async function run(handlers: Partial<JobHandlers>, job: Job): Promise<void> {
  const name = job.name as JobName;
  const handler = handlers[name] as ((payload: JobPayloads[typeof name]) => Promise<void>) | undefined;
  if (handler === undefined) throw new Fault(`no handler for job ${job.name}; an older worker runs here?`);
  await handler(job.data as JobPayloads[typeof name]);
}
