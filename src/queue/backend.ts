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
import pg from 'pg';
import { readRedisUrl } from '../base/redis-url.ts';
import { wait } from '../base/retry.ts';
import type { ConnectionMonitor } from '../postgres/connection-monitor.ts';
import { sessionSetUp } from '../postgres/pool.ts';
import { type OpenRedisOptions, openRedis, pingRedis, type RedisServer } from './redis.ts';

interface QueueTarget {
  readonly databaseUrl: string;
  /** `null` if the queue is in PostgreSQL, in schema `bullmq`. */
  readonly redisUrl: string | null;
  /** See `RedisServer`. */
  readonly redisCa?: string | null;
  /**
   * Detects connections to PostgreSQL that no longer respond. If omitted, such connections are not
   * detected.
   */
  readonly monitor?: ConnectionMonitor;
}

/** BullMQ's default schema for a connection pool. */
const schema = 'bullmq';
const connectionTimeoutMillis = 10_000;
const idleTimeoutMillis = 60_000;
const pingTimeoutMs = 2_000;

type Options<T> = Omit<T, 'connection'>;

/**
 * Creates BullMQ's objects on Redis or PostgreSQL, so that other code does not depend on either.
 */
export interface QueueBackend {
  readonly kind: 'redis' | 'postgres';
  createQueue(name: string, options: Options<QueueOptions>): Queue;
  createWorker(name: string, process: (job: Job) => Promise<void>, options: Options<WorkerOptions>): Worker;
  /**
   * Throws unless Redis responds within a few seconds. This member is `null` if the queue is in
   * PostgreSQL, because health checks examine PostgreSQL anyway.
   */
  readonly ping: (() => Promise<void>) | null;
  close(): Promise<void>;
}

export function createQueueBackend(target: QueueTarget): QueueBackend {
  const { databaseUrl, redisUrl, redisCa = null } = target;
  return redisUrl === null ? onPostgres(databaseUrl, target.monitor) : onRedis({ redisUrl, redisCa });
}

/** Creates or updates the schema `bullmq` for a queue in PostgreSQL. */
export async function migrateQueue(client: pg.ClientBase): Promise<void> {
  await runMigrations(client as never, schema);
}

function onPostgres(databaseUrl: string, monitor: ConnectionMonitor | undefined): QueueBackend {
  // Shared by all BullMQ objects of the process. Each worker uses one connection for LISTEN.
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    max: 6,
    keepAlive: true,
    connectionTimeoutMillis,
    // The idle time is longer than an idle worker's poll interval, so that connections stay open. A
    // new connection compiles BullMQ's functions again.
    idleTimeoutMillis,
    onConnect: sessionSetUp({ search_path: schema }, monitor),
  });
  // A connection lost during a query also emits an error, which would end the process.
  pool.on('connect', (client) => client.on('error', () => undefined));
  monitor?.watchPool(pool);
  const createBackend = reconnectingBackend(monitor);
  const connection = pool as never;
  return {
    kind: 'postgres',
    // BullMQ's default types are those of Redis.
    createQueue: (name, options) =>
      new Queue(name, { ...options, connection }, createBackend as never) as never,
    createWorker: (name, process, options) =>
      new Worker(name, process, { ...options, connection }, createBackend as never) as never,
    ping: null,
    close: () => pool.end(),
  };
}

function onRedis(server: RedisServer): QueueBackend {
  const connections: (Redis | Cluster)[] = [];
  const open = (options: OpenRedisOptions = {}): Redis | Cluster => {
    const redis = openRedis(server, options);
    connections.push(redis);
    return redis;
  };
  const inCluster = readRedisUrl(server.redisUrl).kind === 'cluster';
  // In a cluster, all keys of a script must be on one node. The text in braces determines the node.
  const placement = (name: string): { readonly prefix?: string } =>
    inCluster ? { prefix: `{bull:${name}}` } : {};
  let pinger: Redis | Cluster | undefined;
  return {
    kind: 'redis',
    createQueue: (name, options) =>
      new Queue(name, { ...options, ...placement(name), connection: open() as never }),
    createWorker: (name, process, options) =>
      new Worker(name, process, { ...options, ...placement(name), connection: open() as never }),
    async ping() {
      // Without an offline queue, commands on a lost connection fail immediately.
      pinger ??= open({ enableOfflineQueue: false, lazyConnect: true, commandTimeout: pingTimeoutMs });
      await pingRedis(pinger, pingTimeoutMs);
    },
    close: async () => {
      for (const redis of connections) redis.disconnect();
    },
  };
}

const pauseMs = 1_000;

/**
 * Replaces two classes of BullMQ 6.7, which does not survive the loss of PostgreSQL. If its first
 * attempt to connect fails, it never connects again. Its worker retries in microtasks, which block
 * the process.
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

/** A connection that, after a loss, reconnects at the next request. */
class ForgivingConnection extends PostgresConnection {
  readonly #monitor: ConnectionMonitor | undefined;
  #ready: Promise<void> | undefined;

  constructor(connection: PostgresConnectionOptions, monitor: ConnectionMonitor | undefined) {
    super(connection);
    this.#monitor = monitor;
    // The pool replaces a lost idle connection, and a query reports the loss of its own connection.
    // BullMQ's listeners would report each loss once per BullMQ object.
    this.pool.removeAllListeners('error');
    this.pool.on('error', () => undefined);
  }

  override async getListenClient(): ReturnType<PostgresConnection['getListenClient']> {
    // BullMQ may ask for a connection after `close`, and would never return it.
    if (this.isClosing) throw new Error('the queue is closing');
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
      // The connection may be dead without being closed.
      client.release(true);
      throw error;
    }
    client.release();
    setImmediate(() => this.emit('ready'));
  }
}

/** Waits before reporting a failure, because the worker retries without a pause. */
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
