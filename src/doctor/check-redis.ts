import type { Config } from '../config.ts';
import { askRedis } from '../queue/redis.ts';
import { type Finding, failed, ok, warning } from './check.ts';
import { isAtLeast } from './check-machine.ts';

/** BullMQ recommends this version or newer; it refuses what is older than 5. */
const least = '6.2.0';
const refused = '5.0.0';
const nearlyFull = 0.9;

type RedisConfig = Pick<Config, 'redisUrl' | 'redisCa'>;

/** Checks the Redis that the queue lives in, if it does. */
export async function checkRedis({ redisUrl, redisCa }: RedisConfig): Promise<Finding[]> {
  if (redisUrl === null) return [ok('redis', 'not used: the queue lives in PostgreSQL')];
  return askRedis({ redisUrl, redisCa }, async (redis) => {
    const info = readInfo(await redis.info());
    // Managed servers may not tell their configuration.
    const settings = await redis.config('GET', '*').then(readSettings, () => null);
    return [
      judgeVersion(info),
      judgePolicy(settings?.get('maxmemory-policy') ?? info.get('maxmemory_policy')),
      judgeMemory(info),
      judgePersistence(info, settings?.get('save')),
    ];
  });
}

type Fields = ReadonlyMap<string, string>;

function readInfo(text: string): Fields {
  const lines = text.split(/\r?\n/).filter((line) => line.includes(':'));
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]));
}

function readSettings(answer: unknown): Fields {
  const texts = Array.isArray(answer) ? answer.map(String) : [];
  return new Map(texts.flatMap((name, at) => (at % 2 === 0 ? [[name, texts[at + 1] ?? '']] : [])));
}

function judgeVersion(info: Fields): Finding {
  const version = info.get('redis_version') ?? '';
  const judged = [`redis version`, `Redis ${version} answers`, `Use Redis ${least} or newer.`] as const;
  if (!isAtLeast(version, refused)) return failed(...judged);
  return isAtLeast(version, least) ? ok(judged[0], judged[1]) : warning(...judged);
}

function judgePolicy(policy: string | undefined): Finding {
  const check = 'redis maxmemory-policy';
  if (policy === 'noeviction') return ok(check, policy);
  if (policy === undefined)
    return warning(check, 'the server does not tell', 'See to it that maxmemory-policy is noeviction.');
  const advice = 'Set it: `redis-cli config set maxmemory-policy noeviction`, and in redis.conf.';
  return failed(check, `${policy}: it may throw away parts of the queue`, advice);
}

function judgeMemory(info: Fields): Finding {
  const check = 'redis memory';
  const [used, most] = [Number(info.get('used_memory')), Number(info.get('maxmemory'))];
  const mib = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(0)} MiB`;
  if (!(most > 0)) return ok(check, `${mib(used)} used, no bound`);
  const found = `${mib(used)} used of ${mib(most)}`;
  return used / most < nearlyFull
    ? ok(check, found)
    : warning(check, found, 'Raise maxmemory: a full Redis takes no more jobs.');
}

function judgePersistence(info: Fields, save: string | undefined): Finding {
  const check = 'redis persistence';
  if (info.get('aof_enabled') === '1') return ok(check, 'append-only file');
  if (save !== undefined && save !== '') return ok(check, `snapshots (save ${save})`);
  const found = 'nothing is kept on disk';
  const advice = 'No work is lost: workers read in PostgreSQL what is due. `appendonly yes` spares the wait.';
  return warning(check, found, advice);
}
