import type { ConnectionOptions } from 'node:tls';
import { Cluster, type CommonRedisOptions, Redis, type RedisOptions } from 'ioredis';
import { type RedisTarget, readRedisUrl } from '../base/redis-url.ts';
import { growing } from '../base/retry.ts';
import { withDeadline } from '../base/timers.ts';
import { certificateFaults } from '../postgres/sqlstate.ts';

export interface RedisServer {
  readonly redisUrl: string;
  /** Authorities (PEM) of the servers' certificates. `null` for those built into Node. */
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
 * A connection without a response for this time counts as dead. This time is longer than the ten
 * seconds for which a worker waits for work.
 */
const silenceMs = 30_000;
/** After this time without a response, the client asks the next sentinel. */
const sentinelTimeoutMs = 2_000;

/**
 * Connects to a server, to the master behind sentinels, or to a cluster. Only commands report
 * errors of the connection.
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
    // The server became a replica without closing the connection. Reconnecting leads to the new
    // master.
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
      // Certificates contain names, so each connection resolves the name itself.
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
    // `error` would only say that the connection is closed.
    throw cause ?? error;
  } finally {
    redis.disconnect();
  }
}

/**
 * Connects if necessary. Throws after `timeoutMs`, because connecting to a broken cluster may never
 * end.
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

/** Reason and cure, which follow the server's name in a sentence. */
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
