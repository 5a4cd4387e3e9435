/** Checks before the start of a service: its address, Redis, the storage. */
import type { Logger } from 'pino';
import type { Config } from '../../config.ts';
import { findAddressFault } from '../../doctor/check-port.ts';
import type { FileStore } from '../../files/file-store.ts';
import { findDatabaseUrl } from '../../provide-database.ts';
import { askRedis, explainRedis } from '../../queue/redis.ts';
import { describeRedis, readRedisUrl } from '../../redis-url.ts';
import { CommandFailed } from '../errors.ts';

type Address = Pick<Config, 'host' | 'port'>;

/**
 * Throws `CommandFailed` if nobody can listen there now: before anything else is started or made, rather than after.
 * Where another sluice runs on the same data, that is the better thing to say, and is left to whoever opens the data.
 */
export async function checkAddress(
  address: Address & Pick<Config, 'databaseUrl' | 'dataDir'>,
  ownsData: boolean,
): Promise<void> {
  if (ownsData && address.databaseUrl === null && (await findDatabaseUrl(address)) !== undefined) return;
  const fault = await findAddressFault(address);
  if (fault !== null) throw new CommandFailed(fault.advice);
}

type RedisConfig = Pick<Config, 'redisUrl' | 'redisCa'>;

export interface RedisProblem {
  /** The fault and its remedy, in a sentence. */
  readonly sentence: string;
  /** Nothing goes on while it lasts. */
  readonly away: boolean;
}

/** Returns the fault of the queue's Redis, or null. */
export async function checkRedis({ redisUrl, redisCa }: RedisConfig): Promise<RedisProblem | null> {
  if (redisUrl === null) return null;
  const where = describeRedis(readRedisUrl(redisUrl));
  try {
    const policy = await askRedis({ redisUrl, redisCa }, async (redis) => {
      // Managed servers may refuse CONFIG; then nothing is known.
      const answer: unknown = await redis.config('GET', 'maxmemory-policy').catch(() => []);
      return Array.isArray(answer) ? (answer[1] as unknown) : undefined;
    });
    if (policy === undefined || policy === 'noeviction') return null;
    const sentence = `Redis at ${where} may evict the queue (maxmemory-policy ${String(policy)}); set it to noeviction.`;
    return { sentence, away: false };
  } catch (error) {
    return { sentence: `Redis at ${where} ${explainRedis(error)}`, away: true };
  }
}

/** For a service, which starts all the same: the ledger keeps what is due until the queue is back. */
export async function warnOfRedis(config: RedisConfig, log: Logger): Promise<void> {
  const problem = await checkRedis(config);
  if (problem !== null) log.warn(problem.sentence);
}

/**
 * Says at once what is wrong with a bucket: else it would show at the first upload. A service starts all the same, and is
 * not ready while it lasts.
 */
export async function warnOfStorage({ storage }: Config, files: FileStore, log: Logger): Promise<void> {
  if (storage.kind !== 's3') return;
  try {
    await files.check();
  } catch (error) {
    log.warn(error instanceof Error ? error.message : String(error));
  }
}
