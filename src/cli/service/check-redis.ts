import type { Logger } from 'pino';
import type { Config } from '../../config.ts';
import { askRedis } from '../../queue/ask-redis.ts';
import { describeRedis, readRedisUrl } from '../../queue/redis-url.ts';

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
  try {
    const policy = await askRedis({ redisUrl, redisCa }, async (redis) => {
      // Managed servers may not tell their configuration; then nobody can say.
      const answer: unknown = await redis.config('GET', 'maxmemory-policy').catch(() => []);
      return Array.isArray(answer) ? (answer[1] as unknown) : undefined;
    });
    if (policy === undefined || policy === 'noeviction') return null;
    const sentence = `Redis at ${where} may evict the queue (maxmemory-policy ${String(policy)}); set it to noeviction.`;
    return { sentence, away: false };
  } catch (error) {
    return { sentence: `Redis at ${where} ${whyAway(error)}`, away: true };
  }
}

function whyAway(error: unknown): string {
  const answer = error instanceof Error ? error.message : '';
  if (/WRONGPASS|invalid (?:username-)?password/i.test(answer))
    return 'refuses the password. Check the user and the password in REDIS_URL.';
  if (/NOAUTH|HELLO must be called/i.test(answer))
    return 'wants a password, and REDIS_URL has none: redis://:password@host:port.';
  return 'does not answer. Is it running, and is REDIS_URL right?';
}

/** For a service, which starts all the same: the ledger keeps what is due until the queue is back. */
export async function warnOfRedis(config: RedisConfig, log: Logger): Promise<void> {
  const problem = await checkRedis(config);
  if (problem !== null) log.warn(problem.sentence);
}
