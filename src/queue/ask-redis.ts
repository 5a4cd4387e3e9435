import type { Cluster, Redis } from 'ioredis';
import { openRedis, type RedisServer } from './open-redis.ts';
import { pingRedis } from './ping-redis.ts';

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
    // Of a connection that failed the event tells why, the call only that it is closed.
    throw why ?? error;
  } finally {
    redis.disconnect();
  }
}
