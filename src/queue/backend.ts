import { type Job, Queue, type QueueOptions, runMigrations, Worker, type WorkerOptions } from 'bullmq';
import { Redis, type RedisOptions } from 'ioredis';
import type pg from 'pg';
import { createPatientBackend } from './patient-postgres-backend.ts';

export interface QueueTarget {
  readonly databaseUrl: string;
  /** Redis for the queue; null: the queue lives in PostgreSQL, schema `bullmq`. */
  readonly redisUrl: string | null;
}

const pingTimeoutMs = 2_000;

type Options<T> = Omit<T, 'connection'>;

/** BullMQ on one of its two backends; the rest of the code does not know which. */
export interface QueueBackend {
  readonly kind: 'redis' | 'postgres';
  createQueue(name: string, options: Options<QueueOptions>): Queue;
  createWorker(name: string, process: (job: Job) => Promise<void>, options: Options<WorkerOptions>): Worker;
  /** Throws if the queue is away, some seconds later if it hangs. Null where the queue is as well as the database. */
  readonly ping: (() => Promise<void>) | null;
  close(): Promise<void>;
}

export function createQueueBackend(target: QueueTarget): QueueBackend {
  return target.redisUrl === null ? onPostgres(target.databaseUrl) : onRedis(target.redisUrl);
}

/** Makes or updates the schema `bullmq`; needed once per database for the PostgreSQL backend. */
export async function migrateQueue(client: pg.ClientBase): Promise<void> {
  await runMigrations(client as never, 'bullmq');
}

function onPostgres(databaseUrl: string): QueueBackend {
  // One pool per BullMQ object; each worker holds one more connection for LISTEN.
  const connection = { connectionString: databaseUrl, schema: 'bullmq', max: 2, keepAlive: true };
  return {
    kind: 'postgres',
    // BullMQ types its constructors for Redis unless told otherwise; this is the one place that tells it.
    createQueue: (name, options) =>
      new Queue(name, { ...options, connection }, createPatientBackend as never) as never,
    createWorker: (name, process, options) =>
      new Worker(name, process, { ...options, connection }, createPatientBackend as never) as never,
    ping: null,
    close: async () => undefined,
  };
}

function onRedis(redisUrl: string): QueueBackend {
  const opened: Redis[] = [];
  const open = (own: RedisOptions = {}): Redis => {
    const redis = new Redis(redisUrl, {
      ...own,
      maxRetriesPerRequest: null,
      retryStrategy: (attempt) => Math.min(attempt * 100, 2_000),
    });
    redis.on('error', () => undefined);
    opened.push(redis);
    return redis;
  };
  let pinger: Redis | undefined;
  return {
    kind: 'redis',
    // Adding to a queue that is away must fail at once, not hang: the ledger has it anyway.
    createQueue: (name, options) => new Queue(name, { ...options, connection: open() as never }),
    createWorker: (name, process, options) =>
      new Worker(name, process, { ...options, connection: open() as never }),
    async ping() {
      // On a connection of its own that keeps nothing for later: while it is lost it says so at once.
      pinger ??= open({ enableOfflineQueue: false, lazyConnect: true, commandTimeout: pingTimeoutMs });
      if (pinger.status === 'wait') await pinger.connect();
      await pinger.ping();
    },
    close: async () => {
      for (const redis of opened) redis.disconnect();
    },
  };
}
