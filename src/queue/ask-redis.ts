import { Redis } from 'ioredis';

const answerMs = 5_000;

/** A short talk with a Redis on a connection of its own. Throws within seconds if it is away. */
export async function askRedis<T>(redisUrl: string, talk: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(redisUrl, {
    lazyConnect: true,
    connectTimeout: answerMs,
    commandTimeout: answerMs,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  let why: Error | null = null;
  redis.on('error', (error: Error) => {
    why = error;
  });
  try {
    await redis.connect();
    await redis.ping();
    return await talk(redis);
  } catch (error) {
    // Of a connection that failed the event tells why, the call only that it is closed.
    throw why ?? error;
  } finally {
    redis.disconnect();
  }
}
