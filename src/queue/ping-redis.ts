import type { Cluster, Redis } from 'ioredis';

/**
 * Throws unless it answers within the time, connected first where that was left for now. Its own deadlines are not
 * enough: connecting to a cluster that breaks at that moment may never settle.
 */
export async function pingRedis(redis: Redis | Cluster, timeoutMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer from Redis within ${timeoutMs} ms`)), timeoutMs);
  });
  try {
    await Promise.race([connectAndPing(redis), late]);
  } finally {
    clearTimeout(timer);
  }
}

async function connectAndPing(redis: Redis | Cluster): Promise<void> {
  if (redis.status === 'wait') await redis.connect();
  await redis.ping();
}
