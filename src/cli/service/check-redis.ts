import type { Logger } from 'pino';
import type { Config } from '../../config.ts';
import { openRedis } from '../../queue/open-redis.ts';
import { pingRedis } from '../../queue/ping-redis.ts';
import { describeRedis, readRedisUrl } from '../../queue/redis-url.ts';

const answerMs = 5_000;

type RedisConfig = Pick<Config, 'redisUrl' | 'redisCa'>;

export interface RedisProblem {
  /** What is wrong and what to do, in a sentence. */
  readonly sentence: string;
  /** Nothing goes on while it lasts. */
  readonly away: boolean;
}

/** What is wrong with the Redis of the queue; null if nothing is. */
export async function checkRedis({ redisUrl, redisCa }: RedisConfig): Promise<RedisProblem | null> {
  if (redisUrl === null) return null;
  const where = describeRedis(readRedisUrl(redisUrl));
  const redis = openRedis(
    { redisUrl, redisCa },
    { once: true, lazyConnect: true, connectTimeout: answerMs, commandTimeout: answerMs },
  );
  try {
    await pingRedis(redis, answerMs);
    // Managed servers may not tell their configuration; then nobody can say.
    const answer: unknown = await redis.config('GET', 'maxmemory-policy').catch(() => []);
    const policy: unknown = Array.isArray(answer) ? answer[1] : undefined;
    if (policy === undefined || policy === 'noeviction') return null;
    const sentence = `Redis at ${where} may evict the queue (maxmemory-policy ${String(policy)}); set it to noeviction.`;
    return { sentence, away: false };
  } catch {
    const sentence = `Redis at ${where} does not answer. Is it running, and is REDIS_URL right?`;
    return { sentence, away: true };
  } finally {
    redis.disconnect();
  }
}

/** For a service, which starts all the same: the ledger keeps what is due until the queue is back. */
export async function warnOfRedis(config: RedisConfig, log: Logger): Promise<void> {
  const problem = await checkRedis(config);
  if (problem !== null) log.warn(problem.sentence);
}
