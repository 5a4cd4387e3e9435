import type { ConnectionOptions } from 'node:tls';
import { Cluster, type CommonRedisOptions, Redis, type RedisOptions } from 'ioredis';
import { type RedisTarget, readRedisUrl } from '../base/redis-url.ts';
import { growing } from '../base/retry.ts';
import { withDeadline } from '../base/timers.ts';
import { certificateFaults } from '../postgres/sqlstate.ts';

/** Redis as the configuration names it. */
export interface RedisServer {
  readonly redisUrl: string;
  /** Certificates (PEM) that may have signed those of the servers; null: the authorities that Node knows. */
  readonly redisCa: string | null;
}

export interface OpenRedisOptions
  extends Pick<
    CommonRedisOptions,
    'lazyConnect' | 'enableOfflineQueue' | 'commandTimeout' | 'connectTimeout'
  > {
  /** Gives up after the first failure instead of trying again for ever. */
  readonly once?: boolean;
}

/** A command without an answer for this long is on a connection that leads nowhere; workers ask for work every few seconds. */
const silenceMs = 30_000;
/** A machine that is gone without a word must not keep us from asking the next. */
const sentinelTimeoutMs = 2_000;

/** A connection to one server, to the master of the moment, or to a cluster. Its errors are told to commands only. */
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
  { once = false, ...own }: OpenRedisOptions,
): Redis {
  return new Redis({
    ...shared(target, server),
    ...own,
    ...(target.sentinel === null ? target.nodes[0] : sentinelOptions(target, server, once)),
    db: target.db,
    maxRetriesPerRequest: once ? 0 : null,
    retryStrategy: once ? () => null : pauseMs,
    // After a failover without a word: the old master is a replica now, and the connection leads to the wrong one.
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
  const { once = false, lazyConnect, enableOfflineQueue = true, ...own } = options;
  return new Cluster(
    target.nodes.map((node) => ({ ...node })),
    {
      ...(lazyConnect === undefined ? {} : { lazyConnect }),
      enableOfflineQueue,
      clusterRetryStrategy: once ? () => null : pauseMs,
      // Certificates bear names: they are looked up by who connects, not before.
      ...(target.tls ? { dnsLookup: (address, done) => done(null, address) } : {}),
      redisOptions: { ...shared(target, server), ...own, maxRetriesPerRequest: null },
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

/** A short talk with a Redis on a connection of its own; of a cluster, with any of its nodes. Throws within seconds if it is away. */
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
  let why: Error | null = null;
  redis.on('error', (error: Error) => {
    why = error;
  });
  try {
    await pingRedis(redis, answerMs);
    return await talk(redis);
  } catch (error) {
    // The event has the cause; the failed call says only that the connection is closed.
    throw why ?? error;
  } finally {
    redis.disconnect();
  }
}

/** Throws unless it answers in time, connected first if need be. Connecting to a cluster that breaks then may never end by itself. */
export async function pingRedis(redis: Redis | Cluster, timeoutMs: number): Promise<void> {
  await withDeadline(connectAndPing(redis), timeoutMs, () => {
    throw new Error(`no answer from Redis within ${timeoutMs} ms`);
  });
}

async function connectAndPing(redis: Redis | Cluster): Promise<void> {
  if (redis.status === 'wait') await redis.connect();
  await redis.ping();
}

/** Returns what is wrong with a Redis that was asked in vain, and what to do: the predicate of a sentence. */
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
