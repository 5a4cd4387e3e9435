/*
 * The queue (BullMQ on Redis or PostgreSQL, `backend.ts`) only notifies workers that work is due.
 * The work itself is in the table of tasks. If the queue is lost, work is delayed by seconds.
 */
import type { Queue } from 'bullmq';
import type { Logger } from 'pino';
import { Fault, TransientError } from '../base/errors.ts';
import { withDeadline } from '../base/timers.ts';
import {
  type DueTask,
  exportQueueName,
  isOfCore,
  type QueueCounts,
  queueName,
  queueOf,
} from '../domain/task.ts';
import type { TaskQueue } from '../tasks/task-kind.ts';
import type { QueueBackend } from './backend.ts';

/**
 * Maximum time for a call to the queue. If a notice is not delivered in time, the reconciler
 * repeats it.
 */
const callTimeoutMs = 5_000;
/**
 * After a call has timed out, no further call is made for this time, unless that call ends in the
 * meantime.
 */
const askAgainMs = 30_000;
const jobsPerCall = 250;
/** A second notice of the same task within this time has no effect. */
const notifyAgainMs = 5_000;

interface QueueNotifier extends TaskQueue {
  /**
   * @throws TransientError if the queue does not respond. Errors of its connection are also thrown.
   */
  counts(): Promise<readonly QueueCounts[]>;
  close(): Promise<void>;
}

/**
 * Adds a job to the queue for each due task. The id of a job contains the task and its attempt, so
 * two notices of the same attempt add only one job. A job is removed when it ends. The order of
 * jobs does not matter, because a worker runs the next task in the ledger (`findNextTasks`).
 */
export function createQueueNotifier(backend: QueueBackend, onError: (error: Error) => void): QueueNotifier {
  const names = [queueName, exportQueueName];
  const queues = new Map<string, Queue>();
  let isClosed = false;
  // Opened at the first use, because most processes never notify a worker.
  const open = (name: string): Queue => {
    const opened = queues.get(name);
    if (opened !== undefined) return opened;
    if (isClosed) throw new TransientError('the queue is closed');
    const queue = backend.createQueue(name, {
      defaultJobOptions: { attempts: 1, removeOnComplete: true, removeOnFail: true },
    });
    queue.on('error', onError);
    queues.set(name, queue);
    return queue;
  };
  const inTime = boundCalls();
  const add = async (name: string, jobs: readonly ReturnType<typeof taskJob>[]): Promise<void> => {
    for (let at = 0; at < jobs.length; at += jobsPerCall) {
      await inTime(() => open(name).addBulk(jobs.slice(at, at + jobsPerCall)));
    }
  };
  return {
    async notify(tasks, again = false) {
      for (const name of names) {
        await add(
          name,
          tasks.filter(({ kind }) => queueOf(kind) === name).map((task) => taskJob(task, again)),
        );
      }
    },
    counts: () =>
      Promise.all(
        names.map(async (name) => {
          const counts = await inTime(() => open(name).getJobCounts());
          const countOf = (...states: readonly string[]) =>
            states.reduce((sum, state) => sum + (counts[state] ?? 0), 0);
          return {
            name,
            waiting: countOf('waiting', 'prioritized', 'paused', 'waiting-children'),
            active: countOf('active'),
            delayed: countOf('delayed'),
            failed: countOf('failed'),
          };
        }),
      ),
    async close() {
      isClosed = true;
      for (const queue of queues.values()) await queue.close();
    },
  };
}

function taskJob({ taskId, kind, attempt }: DueTask, again: boolean) {
  // If the worker of a job has died, the job remains in the queue for a while. A repeated notice
  // with the same id would have no effect, so the repeated notice gets another id.
  const suffix = again ? `-${Math.floor(Date.now() / notifyAgainMs)}` : '';
  const jobId = `${kind}-${taskId}-${attempt}${suffix}`;
  // The payload contains only ids and a version, because a later release may read the job.
  const data = { v: 1, taskId, attempt };
  // Tasks of capabilities do not wait in the queue. Their jobs only wake a worker, so they are
  // added at the front.
  return { name: kind, data, opts: { jobId, lifo: !isOfCore(kind) } };
}

/**
 * Limits the duration and number of calls to a queue that does not respond. Without the limit,
 * clients would collect calls and send all of them at once when the queue is back.
 */
function boundCalls(): <T>(call: () => Promise<T>) => Promise<T> {
  let overdue: Promise<unknown> | null = null;
  let askAgainAt = 0;
  return async (call) => {
    if (overdue !== null && performance.now() < askAgainAt) throw new TransientError(silent);
    const answer = call();
    return withDeadline(answer, callTimeoutMs, () => {
      const end = answer.then(nothing, nothing).then(() => {
        if (overdue === end) overdue = null;
      });
      overdue = end;
      askAgainAt = performance.now() + askAgainMs;
      throw new TransientError(silent);
    });
  };
}

const silent = 'the queue does not answer';
const nothing = (): void => undefined;

interface Consumer {
  /** Stops taking jobs from the queue, and waits until the running jobs have ended. */
  close(): Promise<void>;
}

/**
 * Runs the jobs of a queue. The name of a job determines its handler. A lost job does no harm,
 * because the ledger decides whether work is due, and its notice is repeated.
 */
export function consume(
  backend: QueueBackend,
  handlers: Readonly<Record<string, () => Promise<void>>>,
  options: { readonly concurrency: number; readonly log: Logger; readonly queue?: string },
): Consumer {
  const worker = backend.createWorker(
    options.queue ?? queueName,
    async ({ name }) => {
      const handler = handlers[name];
      if (handler === undefined) throw new Fault(`no handler for job ${name}; an older worker runs here?`);
      await handler();
    },
    {
      concurrency: options.concurrency,
      lockDuration: 10_000,
      // If a worker dies, BullMQ returns its job to the queue. The high limit prevents BullMQ from
      // failing a job that has been returned several times.
      stalledInterval: 30_000,
      // Maximum seconds to wait for a notice. A lost notice is repeated by the reconciler.
      drainDelay: 10,
      maxStalledCount: 1_000_000,
      // Pause after a connection was refused. With BullMQ's default of 15 s, work would resume too
      // late.
      runRetryDelay: 1_000,
      removeOnComplete: { count: 0 },
      removeOnFail: { count: 0 },
    },
  );
  worker.on('error', (error) => options.log.warn({ err: error }, 'queue worker error'));
  worker.on('failed', (job, error) => options.log.error({ err: error, job: job?.name }, 'job failed'));
  return { close: () => worker.close() };
}
