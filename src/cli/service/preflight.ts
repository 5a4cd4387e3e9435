/** What a service checks before it starts: its address, Redis, the storage. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { Logger } from 'pino';
import type { Config } from '../../config.ts';
import type { FileStore } from '../../files/file-store.ts';
import { findDatabaseUrl } from '../../provide-database.ts';
import { askRedis } from '../../queue/redis.ts';
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
  const probe = createServer();
  try {
    probe.listen({ host: address.host, port: address.port });
    await once(probe, 'listening');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    throw new CommandFailed(explainAddress(code, address, error));
  }
  probe.close();
  await once(probe, 'close');
}

function explainAddress(code: string, { host, port }: Address, error: unknown): string {
  switch (code) {
    case 'EADDRINUSE':
      return `Port ${port} is taken by another program. Choose another with --port (PORT); 0 takes any free one.`;
    case 'EACCES':
    case 'EPERM':
      return `This user may not listen on port ${port}: those below 1024 take special rights. Choose another with --port (PORT), such as 8080, and let a proxy pass port ${port} on.`;
    case 'EADDRNOTAVAIL':
      return `${host} is no address of this machine. Choose one with --host (HOST): 127.0.0.1 for this machine only, 0.0.0.0 for every interface.`;
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `${host} is no address, and no name that is known here. Choose one with --host (HOST): 127.0.0.1 for this machine only, 0.0.0.0 for every interface.`;
    default:
      return `Nobody can listen on ${host}, port ${port}: ${error instanceof Error ? error.message : String(error)}`;
  }
}

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
      // Managed servers may refuse CONFIG; then nothing is known.
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
