import {
  assertSchemaCompatibility,
  type BackendFactory,
  type Job,
  PostgresConnection,
  type PostgresConnectionOptions,
  PostgresQueueBackend,
  Queue,
  type QueueOptions,
  runMigrations,
  Worker,
  type WorkerOptions,
} from 'bullmq';
import type { Cluster, Redis } from 'ioredis';
import type pg from 'pg';
import { readRedisUrl } from '../base/redis-url.ts';
import { wait } from '../base/retry.ts';
import type { ConnectionMonitor } from '../postgres/connection-monitor.ts';
import { sessionSetUp } from '../postgres/pool.ts';
import { type OpenRedisOptions, openRedis, pingRedis, type RedisServer } from './redis.ts';

export interface QueueTarget {
  readonly databaseUrl: string;
  /** Redis for the queue; null: the queue lives in PostgreSQL, schema `bullmq`. */
  readonly redisUrl: string | null;
  /** See `RedisServer`. */
  readonly redisCa?: string | null;
  /** Finds connections to PostgreSQL that went silent; default: nobody does. */
  readonly monitor?: ConnectionMonitor;
}

const connectionTimeoutMillis = 10_000;
const idleTimeoutMillis = 60_000;
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
  const { databaseUrl, redisUrl, redisCa = null } = target;
  return redisUrl === null ? onPostgres(databaseUrl, target.monitor) : onRedis({ redisUrl, redisCa });
}

/** Makes or updates the schema `bullmq`; needed once per database for the PostgreSQL backend. */
export async function migrateQueue(client: pg.ClientBase): Promise<void> {
  await runMigrations(client as never, 'bullmq');
}

function onPostgres(databaseUrl: string, monitor: ConnectionMonitor | undefined): QueueBackend {
  // Each BullMQ object has one pool, and each worker one more connection for LISTEN.
  const connection = {
    connectionString: databaseUrl,
    schema: 'bullmq',
    max: 2,
    keepAlive: true,
    connectionTimeoutMillis,
    // Longer than an idle worker's polls: BullMQ's functions are compiled once per connection.
    idleTimeoutMillis,
    onConnect: sessionSetUp({ search_path: 'bullmq' }, monitor),
  };
  const createBackend = reconnectingBackend(monitor);
  return {
    kind: 'postgres',
    // BullMQ types its constructors for Redis unless told otherwise; this is the one place that tells it.
    createQueue: (name, options) =>
      new Queue(name, { ...options, connection }, createBackend as never) as never,
    createWorker: (name, process, options) =>
      new Worker(name, process, { ...options, connection }, createBackend as never) as never,
    ping: null,
    close: async () => undefined,
  };
}

function onRedis(server: RedisServer): QueueBackend {
  const opened: (Redis | Cluster)[] = [];
  const open = (own: OpenRedisOptions = {}): Redis | Cluster => {
    const redis = openRedis(server, own);
    opened.push(redis);
    return redis;
  };
  const inCluster = readRedisUrl(server.redisUrl).kind === 'cluster';
  // A script touches many keys of a queue; what is in braces keeps them on one node of a cluster.
  const placed = (name: string): { readonly prefix?: string } =>
    inCluster ? { prefix: `{bull:${name}}` } : {};
  let pinger: Redis | Cluster | undefined;
  return {
    kind: 'redis',
    // Adding to a queue that is away must fail at once, not hang: the ledger has it anyway.
    createQueue: (name, options) =>
      new Queue(name, { ...options, ...placed(name), connection: open() as never }),
    createWorker: (name, process, options) =>
      new Worker(name, process, { ...options, ...placed(name), connection: open() as never }),
    async ping() {
      // On a connection of its own that keeps nothing for later: while it is lost it says so at once.
      pinger ??= open({ enableOfflineQueue: false, lazyConnect: true, commandTimeout: pingTimeoutMs });
      await pingRedis(pinger, pingTimeoutMs);
    },
    close: async () => {
      for (const redis of opened) redis.disconnect();
    },
  };
}

/** The pause of a worker after a refusal. */
const pauseMs = 1_000;

/**
 * BullMQ 6.7 on PostgreSQL, made to survive a lost database. As shipped, a connection keeps a
 * failed first connect for ever and a worker asks again at once, in microtasks that block the
 * process.
 */
function reconnectingBackend(
  monitor: ConnectionMonitor | undefined,
): BackendFactory<PostgresQueueBackend, PostgresConnectionOptions> {
  return (name, options, { withBlockingConnection = false } = {}) =>
    new ReconnectingBackend(
      new ForgivingConnection(options.connection, monitor),
      name,
      options,
      true,
      withBlockingConnection ? name : undefined,
    );
}

/** BullMQ does not publish it. */
interface Internals {
  readonly listenClientConfig: pg.ClientConfig;
}

/** Tries again when asked again. */
class ForgivingConnection extends PostgresConnection {
  readonly #monitor: ConnectionMonitor | undefined;
  #ready: Promise<void> | undefined;

  constructor(connection: PostgresConnectionOptions, monitor: ConnectionMonitor | undefined) {
    super(connection);
    this.#monitor = monitor;
    const pool = this.pool as unknown as pg.Pool;
    // BullMQ sets the search path by `options`, which poolers refuse: `onConnect` sets it, and `listen` needs none.
    const configs: readonly pg.ClientConfig[] = [
      pool.options,
      (this as unknown as Internals).listenClientConfig,
    ];
    for (const config of configs) delete config.options;
    // A connection lost while it is lent tells its query, and emits an error that ends the process if nobody listens.
    pool.on('connect', (client) => client.on('error', () => undefined));
    monitor?.watchPool(pool);
  }

  /** The one that listens is no connection of the pool. */
  override async getListenClient(): ReturnType<PostgresConnection['getListenClient']> {
    const client = await super.getListenClient();
    await this.#monitor?.watch(client as unknown as pg.Client, { listens: true });
    return client;
  }

  override waitUntilReady(): Promise<void> {
    this.#ready ??= this.#check().catch((error: unknown) => {
      this.#ready = undefined;
      throw error;
    });
    return this.#ready;
  }

  async #check(): Promise<void> {
    const client = await this.pool.connect();
    try {
      await assertSchemaCompatibility(client, this.schema);
    } catch (error) {
      // It may be lost without knowing it yet; the next one who asks must not be lent it.
      client.release(true);
      throw error;
    }
    client.release();
    setImmediate(() => this.emit('ready'));
  }
}

/** Takes its time to report a failure to the worker, which does not take its own. */
class ReconnectingBackend extends PostgresQueueBackend {
  override async moveToActive(token: string, name?: string): Promise<unknown[]> {
    try {
      return await super.moveToActive(token, name);
    } catch (error) {
      await wait(pauseMs);
      throw error;
    }
  }
}
