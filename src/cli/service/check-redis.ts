import type { Logger } from 'pino';
import { askRedis } from '../../queue/ask-redis.ts';

export interface RedisProblem {
  /** What is wrong and what to do, in a sentence. */
  readonly sentence: string;
  /** Nothing goes on while it lasts. */
  readonly away: boolean;
}

/** What is wrong with the Redis of the queue; null if nothing is. */
export async function checkRedis(redisUrl: string | null): Promise<RedisProblem | null> {
  if (redisUrl === null) return null;
  const { hostname, port } = new URL(redisUrl);
  try {
    const policy = await askRedis(redisUrl, async (redis) => {
      // Managed servers may not tell their configuration; then nobody can say.
      const answer: unknown = await redis.config('GET', 'maxmemory-policy').catch(() => []);
      return Array.isArray(answer) ? (answer[1] as unknown) : undefined;
    });
    if (policy === undefined || policy === 'noeviction') return null;
    const sentence = `Redis at ${hostname} may evict the queue (maxmemory-policy ${String(policy)}); set it to noeviction.`;
    return { sentence, away: false };
  } catch {
    const sentence = `Redis at ${hostname}:${port || '6379'} does not answer. Is it running, and is REDIS_URL right?`;
    return { sentence, away: true };
  }
}

/** For a service, which starts all the same: the ledger keeps what is due until the queue is back. */
export async function warnOfRedis(redisUrl: string | null, log: Logger): Promise<void> {
  const problem = await checkRedis(redisUrl);
  if (problem !== null) log.warn(problem.sentence);
}
