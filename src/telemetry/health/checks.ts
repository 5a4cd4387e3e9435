/**
 * Checks of `sluice status`. A check that throws or hangs becomes a finding. Checks start no
 * services and migrate nothing. Findings contain no secrets.
 */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../../base/config.ts';
import { GiB } from '../../base/limits.ts';
import { packageRoot } from '../../base/package-root.ts';
import { describeRedis, readRedisUrl } from '../../base/redis-url.ts';
import { type Setting, settings } from '../../base/settings.ts';
import { foldersWritten, isFull, readDisk } from '../../files/disk.ts';
import { type FileStore, writeWhole } from '../../files/file-store.ts';
import { openFileStore } from '../../files/storage.ts';
import { explainConnection, isDiskFull } from '../../postgres/sqlstate.ts';
import { findDatabaseUrl } from '../../queue/provide-database.ts';
import { askRedis, explainRedis } from '../../queue/redis.ts';
import { type Finding, failed, ok, runChecks, warning } from './findings.ts';
import { checkPostgres } from './postgres.ts';

/** Never throws. */
export async function examine(config: Config): Promise<Finding[]> {
  const files = openFileStore(config.storage, config.maxInflatedBytes);
  const findings = await runChecks([
    { name: 'node', deadlineMs: 2_000, run: checkNode, advise: () => 'Install sluice again.' },
    {
      name: 'postgres',
      deadlineMs: 30_000,
      run: () => checkDatabase(config),
      advise: (error) => {
        if (isDiskFull(error)) return 'Make room on the disk of the database.';
        return explainConnection(error)?.advice ?? 'Is the server running, and is DATABASE_URL right?';
      },
    },
    {
      name: 'redis',
      deadlineMs: 15_000,
      run: () => checkRedis(config),
      advise: (error) => `Redis ${explainRedis(error)}`,
    },
    {
      name: 'storage',
      deadlineMs: 20_000,
      run: () => checkStorage(files),
      advise: () => adviseOnStorage(config.storage),
    },
    { name: 'disk', deadlineMs: 5_000, run: () => checkDisks(config), advise: () => 'Is the disk mounted?' },
    { name: 'links', deadlineMs: 1_000, run: async () => [checkLinks(config)], advise: () => '' },
  ]);
  return hideSecrets(findings, config);
}

function adviseOnStorage(storage: Config['storage']): string {
  if (storage.kind === 's3') return 'Compare what the key may do with docs/storage.md.';
  return `May this user write into ${storage.directory}, and is its disk mounted?`;
}

/** Without PUBLIC_URL, links contain the request's `Host`, which its sender can choose. */
function checkLinks({ publicUrl, host }: Config): Finding {
  if (publicUrl !== null) return ok('links', `Links lead to ${publicUrl}`);
  if (/^(127\.|::1$|localhost$)/.test(host)) return ok('links', 'Links lead to this machine');
  const state = `Links repeat the host that a request names, since HOST is ${host} and PUBLIC_URL is not set`;
  return warning('links', state, 'Set PUBLIC_URL to the address that callers use.');
}

/** Package managers only warn about the version in `engines`. */
async function checkNode(): Promise<Finding[]> {
  const { engines } = JSON.parse(await readFile(join(packageRoot, 'package.json'), 'utf8')) as {
    readonly engines: { readonly node: string };
  };
  const least = engines.node.replace(/^>=/, '');
  const { node } = process.versions;
  if (isAtLeast(node, least)) return [ok('node', `Node.js ${node}`)];
  return [failed('node', `Node.js ${node}`, `Install Node.js ${least} or newer.`)];
}

function isAtLeast(version: string, least: string): boolean {
  return version.localeCompare(least, 'en', { numeric: true }) >= 0;
}

async function checkDatabase(config: Config): Promise<readonly Finding[]> {
  const url = await findDatabaseUrl(config);
  if (url === undefined)
    return [
      failed('postgres', `No database runs on ${config.dataDir}`, 'Run `sluice start`, or set DATABASE_URL.'),
    ];
  return checkPostgres(url, config);
}

/** BullMQ recommends 6.2, and refuses versions below 5. */
const leastRedis = '6.2.0';
const refusedRedis = '5.0.0';

async function checkRedis(config: Pick<Config, 'redisUrl' | 'redisCa'>): Promise<Finding[]> {
  const { redisUrl, redisCa } = config;
  if (redisUrl === null) return [ok('queue', 'The queue is in PostgreSQL')];
  const info = await askRedis({ redisUrl, redisCa }, (redis) => redis.info());
  const read = (name: string): string => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1] ?? '';
  const version = read('redis_version');
  const policy = read('maxmemory_policy');
  const judge = isAtLeast(version, refusedRedis) ? warning : failed;
  return [
    isAtLeast(version, leastRedis)
      ? ok('redis version', `Redis ${version}`)
      : judge('redis version', `Redis ${version}`, `Use Redis ${leastRedis} or newer.`),
    ['noeviction', ''].includes(policy)
      ? ok('redis policy', policy || 'The server does not tell')
      : failed('redis policy', `maxmemory-policy is ${policy}`, 'Set maxmemory-policy to noeviction.'),
  ];
}

const leastShare = 0.1;

async function checkDisks(config: Config): Promise<Finding[]> {
  const disks = await Promise.all(foldersWritten(config).map(readDisk));
  const byDevice = new Map(disks.toReversed().map((disk) => [disk.device, disk]));
  return [...byDevice.values()].map(({ folder, freeBytes, allBytes }) => {
    const check = `disk of ${folder}`;
    const free = `${(freeBytes / GiB).toFixed(1)} GiB of ${(allBytes / GiB).toFixed(1)} GiB are free`;
    const advice = 'Make room: shorten FILE_RETENTION_DAYS and run `sluice prune`, or get a larger disk.';
    if (isFull({ freeBytes })) return failed(check, `The disk of ${folder} is full: ${free}`, advice);
    return freeBytes < GiB || freeBytes < allBytes * leastShare
      ? warning(check, free, advice)
      : ok(check, free);
  });
}

const sample = Buffer.from('sluice status: written, read in part and in whole, and removed\n'.repeat(64));
const [start, end] = [1_000, 1_100];

/** Performs on a small file the operations that loads and exports perform on large files. */
export async function checkStorage(files: FileStore): Promise<Finding[]> {
  await files.check();
  const ref = await writeWhole(await files.create(), [sample]);
  try {
    const part = await files.readRange(ref, start, end);
    const whole = Buffer.concat(await files.open(ref).toArray());
    if (!part.equals(sample.subarray(start, end)) || !whole.equals(sample)) {
      const advice = 'Look for a proxy or a gateway that changes files on the way.';
      return [failed('storage', 'A file came back different from what was written', advice)];
    }
  } finally {
    await files.remove(ref);
  }
  return [ok('storage', 'A file was written, read and removed')];
}

const shortestSecret = 3;

const secretSettings = new Set(
  Object.entries<Setting>(settings).flatMap(([key, { secret }]) => (secret === true ? [key] : [])),
);

/** Findings contain messages of servers, which may repeat secrets that the servers received. */
export function hideSecrets(findings: readonly Finding[], config: Config): Finding[] {
  const { databaseUrl, redisUrl, storage } = config;
  const credentials = storage.kind === 's3' ? storage.credentials : null;
  const secrets = [
    ...[databaseUrl, redisUrl].flatMap(passwordsOf),
    ...[credentials?.secretAccessKey, credentials?.sessionToken],
    ...Object.entries(config).flatMap(([key, value]) => (secretSettings.has(key) ? [value] : [])),
  ]
    .filter((secret) => typeof secret === 'string')
    .filter(({ length }) => length >= shortestSecret)
    .sort((a, b) => b.length - a.length);
  const hide = (text: string): string =>
    secrets.reduce((shown, secret) => shown.replaceAll(secret, '[secret]'), text);
  return findings.map(({ check, status, found, advice }) => {
    return { check, status, found: hide(found), advice: advice && hide(advice) };
  });
}

/** Returns the URL, its password as written, and its decoded password. */
function passwordsOf(url: string | null): string[] {
  if (url === null || !URL.canParse(url)) return [];
  const { password } = new URL(url);
  try {
    return [url, password, decodeURIComponent(password)];
  } catch {
    return [url, password];
  }
}

type RedisConfig = Pick<Config, 'redisUrl' | 'redisCa'>;

/**
 * Fault of the Redis server that contains the queue, or `null`. If `away`, Redis does not respond,
 * and all queued work waits.
 */
export async function findRedisFault(
  config: RedisConfig,
): Promise<{ readonly sentence: string; readonly away: boolean } | null> {
  if (config.redisUrl === null) return null;
  const where = describeRedis(readRedisUrl(config.redisUrl));
  try {
    const fault = (await checkRedis(config)).find(({ status }) => status === 'failed');
    if (fault === undefined) return null;
    return { sentence: `Redis at ${where}: ${fault.check}: ${fault.found}. ${fault.advice}`, away: false };
  } catch (error) {
    return { sentence: `Redis at ${where} ${explainRedis(error)}`, away: true };
  }
}
