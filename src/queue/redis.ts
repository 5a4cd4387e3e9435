import type { ConnectionOptions } from 'node:tls';
import { Cluster, type CommonRedisOptions, Redis, type RedisOptions } from 'ioredis';
import { type RedisTarget, readRedisUrl } from '../base/redis-url.ts';
import { growing } from '../base/retry.ts';
import { withDeadline } from '../base/timers.ts';
import { certificateFaults } from '../postgres/sqlstate.ts';

export interface RedisServer {
  readonly redisUrl: string;
  /**
   * Certificates (PEM) of the authorities that sign the servers' certificates. `null` to use those
   * built into Node.
   */
  readonly redisCa: string | null;
}

export interface OpenRedisOptions
  extends Pick<
    CommonRedisOptions,
    'lazyConnect' | 'enableOfflineQueue' | 'commandTimeout' | 'connectTimeout'
  > {
  /** True to fail at the first error. Otherwise, connecting is retried forever. */
  readonly once?: boolean;
}

/**
 * A connection counts as dead if a command gets no response within this time. The time must be
 * longer than the ten seconds for which a worker waits for work.
 */
const silenceMs = 30_000;
/** If a sentinel does not respond within this time, the client asks the next sentinel. */
const sentinelTimeoutMs = 2_000;

/**
 * Opens a connection to a single server, to the current master behind sentinels, or to a cluster.
 * Errors of the connection are reported only by its commands.
 */
export function openRedis(server: RedisServer, options: OpenRedisOptions = {}): Redis | Cluster {
  const target = readRedisUrl(server.redisUrl);
  const client =
    target.kind === 'cluster' ? openCluster(target, server, options) : openOne(target, server, options);
  client.on('error', () => undefined);
  return client;
}

function openOne(
  target: RedisTarget,
  server: RedisServer,
  { once = false, ...others }: OpenRedisOptions,
): Redis {
  return new Redis({
    ...shared(target, server),
    ...others,
    ...(target.sentinel === null ? target.nodes[0] : sentinelOptions(target, server, once)),
    db: target.db,
    maxRetriesPerRequest: once ? 0 : null,
    retryStrategy: once ? () => null : pauseMs,
    // This error means that the server has become a replica without closing the connection. After
    // reconnecting, the connection leads to the new master.
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  });
}

function sentinelOptions(
  { nodes, sentinel, tls }: RedisTarget,
  server: RedisServer,
  once: boolean,
): RedisOptions {
  return {
    sentinels: nodes.map((node) => ({ ...node })),
    name: sentinel?.name,
    sentinelUsername: sentinel?.username ?? undefined,
    sentinelPassword: sentinel?.password ?? undefined,
    enableTLSForSentinelMode: tls,
    sentinelTLS: tls ? tlsOptions(server) : undefined,
    connectTimeout: sentinelTimeoutMs,
    sentinelCommandTimeout: sentinelTimeoutMs,
    sentinelRetryStrategy: once ? () => null : pauseMs,
  };
}

function openCluster(target: RedisTarget, server: RedisServer, options: OpenRedisOptions): Cluster {
  const { once = false, lazyConnect, enableOfflineQueue = true, ...others } = options;
  return new Cluster(
    target.nodes.map((node) => ({ ...node })),
    {
      ...(lazyConnect === undefined ? {} : { lazyConnect }),
      enableOfflineQueue,
      clusterRetryStrategy: once ? () => null : pauseMs,
      // Passes on the host name instead of an address, because the servers' certificates contain
      // names. Each connection then resolves the name itself.
      ...(target.tls ? { dnsLookup: (address, done) => done(null, address) } : {}),
      redisOptions: { ...shared(target, server), ...others, maxRetriesPerRequest: null },
    },
  );
}

function shared(target: RedisTarget, server: RedisServer): RedisOptions {
  return {
    username: target.username ?? undefined,
    password: target.password ?? undefined,
    family: target.family ?? undefined,
    tls: target.tls ? tlsOptions(server) : undefined,
    socketTimeout: silenceMs,
  };
}

function tlsOptions({ redisCa }: RedisServer): ConnectionOptions {
  return redisCa === null ? {} : { ca: redisCa };
}

const pauseMs = growing(100, 2_000);

const answerMs = 5_000;

/**
 * Calls `talk` with a new connection. In a cluster, the connection may lead to any node. Throws
 * within seconds if Redis is unavailable.
 */
export async function askRedis<T>(
  server: RedisServer,
  talk: (redis: Redis | Cluster) => Promise<T>,
): Promise<T> {
  const redis = openRedis(server, {
    once: true,
    lazyConnect: true,
    connectTimeout: answerMs,
    commandTimeout: answerMs,
  });
  let cause: Error | null = null;
  redis.on('error', (error: Error) => {
    cause = error;
  });
  try {
    await pingRedis(redis, answerMs);
    return await talk(redis);
  } catch (error) {
    // `cause` is the error of the connection. `error` would only report that the connection is
    // closed.
    throw cause ?? error;
  } finally {
    redis.disconnect();
  }
}

/**
 * Connects if necessary, and waits for a response from Redis. Throws after `timeoutMs`, because
 * connecting to a broken cluster may never end.
 */
export async function pingRedis(redis: Redis | Cluster, timeoutMs: number): Promise<void> {
  await withDeadline(connectAndPing(redis), timeoutMs, () => {
    throw new Error(`no answer from Redis within ${timeoutMs} ms`);
  });
}

async function connectAndPing(redis: Redis | Cluster): Promise<void> {
  if (redis.status === 'wait') await redis.connect();
  await redis.ping();
}

/**
 * Returns the reason why Redis does not respond, and the cure, as text that follows the name of the
 * server in a sentence.
 */
export function explainRedis(error: unknown): string {
  const answer = error instanceof Error ? error.message : '';
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const reason = certificateFaults[code];
  if (reason !== undefined)
    return `shows a certificate that is not to be trusted: ${reason}. Check the host in REDIS_URL, and REDIS_CA.`;
  if (/WRONGPASS|invalid (?:username-)?password/i.test(answer))
    return 'refuses the password. Check the user and the password in REDIS_URL.';
  if (/NOAUTH|HELLO must be called/i.test(answer))
    return 'wants a password, and REDIS_URL has none: redis://:password@host:port.';
  if (/wrong version number|packet length too long/i.test(answer))
    return 'does not speak TLS at that port. Write redis:// instead of rediss://, or name its TLS port.';
  if (code === 'ENOTFOUND') return 'is not known by that name. Is the host in REDIS_URL spelt right?';
  return 'does not answer. Is it running, and is REDIS_URL right?';
}
