/*
 * The queue (BullMQ on Redis or PostgreSQL, `backend.ts`) only tells workers that work is due. The
 * work is in the table of tasks, so the loss of the queue delays work only by seconds.
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

/** The reconciler repeats a notice that is not delivered in time. */
const callTimeoutMs = 5_000;
/** Pause after a call that timed out. The pause ends early if the call ends. */
const askAgainMs = 30_000;
const jobsPerCall = 250;
/** A repeated notice of a task within this time has no effect. */
const notifyAgainMs = 5_000;

interface QueueNotifier extends TaskQueue {
  /**
   * @throws TransientError if the queue does not respond. Errors of its connection are also thrown.
   */
  counts(): Promise<readonly QueueCounts[]>;
  close(): Promise<void>;
}

/**
 * Adds a job for each due task. The id of the job consists of task and attempt, so two notices add
 * only one job. A job is removed when it ends. The order of the jobs does not matter, because a
 * worker runs the next task in the ledger (`findNextTasks`).
 */
export function createQueueNotifier(backend: QueueBackend, onError: (error: Error) => void): QueueNotifier {
  const names = [queueName, exportQueueName];
  const queues = new Map<string, Queue>();
  let isClosed = false;
  // A queue is opened only when it is used, because most processes never notify a worker.
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
  // The job of a dead worker stays in the queue for a while. A repeated notice with the same id
  // would have no effect.
  const suffix = again ? `-${Math.floor(Date.now() / notifyAgainMs)}` : '';
  const jobId = `${kind}-${taskId}-${attempt}${suffix}`;
  // A job contains only ids and a version, because a later release may read it.
  const data = { v: 1, taskId, attempt };
  // Tasks of capabilities do not wait in the queue. Their jobs only wake a worker, so they go to
  // the front.
  return { name: kind, data, opts: { jobId, lifo: !isOfCore(kind) } };
}

/**
 * Refuses most calls while the queue does not respond. Otherwise, clients would collect the calls,
 * and send all of them when the queue responds again.
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
  /** Stops taking jobs, and waits until the running jobs have ended. */
  close(): Promise<void>;
}

/**
 * A job's name determines its handler. A lost job does no harm, because the ledger decides whether
 * work is due, and notices of due work are repeated.
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
      // BullMQ returns the job of a dead worker to the queue. After several returns, BullMQ would
      // fail the job. The high limit prevents this.
      stalledInterval: 30_000,
      // Seconds to wait for a notice.
      drainDelay: 10,
      maxStalledCount: 1_000_000,
      // Milliseconds to wait after a refused connection. BullMQ's default of 15 s would be too
      // long.
      runRetryDelay: 1_000,
      removeOnComplete: { count: 0 },
      removeOnFail: { count: 0 },
    },
  );
  worker.on('error', (error) => options.log.warn({ err: error }, 'queue worker error'));
  worker.on('failed', (job, error) => options.log.error({ err: error, job: job?.name }, 'job failed'));
  return { close: () => worker.close() };
}
