import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, resolve } from 'node:path';
import { isMailAddress } from './domain/mail-address.ts';
import { readStorage, type Storage, type StorageSettings } from './files/storage.ts';
import { readRedisUrl } from './queue/redis-url.ts';
import { ConfigError, type Setting } from './setting.ts';
import { settings } from './settings.ts';

type Settings = typeof settings;

/** What the environment and the flags come to. Read once, at the entry, and passed from there. */
export type Config = {
  readonly [K in keyof Omit<
    Settings,
    | 'workers'
    | 'dataDir'
    | 'databaseUrl'
    | 'redisUrl'
    | 'redisTlsCa'
    | 'publicUrl'
    | 'apiKey'
    | 'metricsToken'
    | 'adminKey'
    | 'smtpUrl'
    | keyof StorageSettings
    | 'notifyAllowPrivate'
    | 'notifyAllowHttp'
    | 'inboxDir'
    | 'schedulesFile'
    | 'schedulesLocalRoots'
    | 'schedulesExportRoots'
    | 'schedulesAllowPrivate'
  >]: ReturnType<Settings[K]['read']>;
} & {
  readonly workers: number;
  /** Absolute. */
  readonly dataDir: string;
  /** Where files are kept. May hold credentials: not to be logged. */
  readonly storage: Storage;
  /** Absolute folder of the files; where they are on S3, one that nobody uses. */
  readonly filesDir: string;
  /** Absolute folder that is watched for files; null: none is. */
  readonly inboxDir: string | null;
  readonly databaseUrl: string | null;
  /** With its passwords: not to be logged. */
  readonly redisUrl: string | null;
  /** PEM; null: the authorities that Node knows. */
  readonly redisCa: string | null;
  readonly publicUrl: string | null;
  readonly apiKey: string | null;
  /** What a scrape of /metrics must show; null: nothing. */
  readonly metricsToken: string | null;
  /** What opens the dashboard of the queue; null: nothing does. */
  readonly adminKey: string | null;
  /** With its password: not to be logged. Null: messages go to the outbox. */
  readonly smtpUrl: string | null;
  /** Absolute folder of the messages that are not sent. */
  readonly outboxDir: string;
  readonly notifyAllowPrivate: boolean;
  readonly notifyAllowHttp: boolean;
  /** Absolute; null: no schedules. */
  readonly schedulesFile: string | null;
  /** Absolute. */
  readonly schedulesLocalRoots: readonly string[];
  readonly schedulesExportRoots: readonly string[];
  readonly schedulesAllowPrivate: boolean;
};

/**
 * Reads the configuration. `environment` is `process.env` or a test's own; `overrides` come from flags. A setting NAME can
 * be given by a file, as secrets of containers are: NAME_FILE names it.
 * Throws `ConfigError` that names every setting at fault and its rule.
 */
export function readConfig(
  environment: Readonly<Record<string, string | undefined>>,
  overrides: Readonly<Record<string, string | undefined>> = {},
): Config {
  const problems: string[] = [];
  const values: Record<string, unknown> = {};
  for (const [key, setting] of Object.entries<Setting<unknown>>(settings)) {
    try {
      const given = overrides[setting.name] ?? givenValue(setting.name, environment);
      values[key] = setting.read(given === undefined || given === '' ? setting.fallback : given);
    } catch (error) {
      problems.push(`${setting.name}: ${error instanceof Error ? error.message : String(error)}`);
      // So that what is read from several of them can be looked at, too.
      values[key] = setting.read(setting.fallback);
    }
  }
  const read = values as { [K in keyof Settings]: ReturnType<Settings[K]['read']> };
  const config = derive(read, (work, instead) => {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      problems.push(error.message);
      return instead;
    }
  });
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
  return Object.freeze(config);
}

function givenValue(
  name: string,
  environment: Readonly<Record<string, string | undefined>>,
): string | undefined {
  const [value, file] = [environment[name] ?? '', environment[`${name}_FILE`] ?? ''];
  if (file === '') return value;
  if (value !== '') throw new ConfigError(`set ${name} or ${name}_FILE, not both`);
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ConfigError(`the file that ${name}_FILE names cannot be read (${code})`);
  }
}

/** Does the work, or notes what is wrong and goes on with something else, so that every problem is told at once. */
type Attempt = <T>(work: () => T, instead: T) => T;

function derive(
  values: { readonly [K in keyof Settings]: ReturnType<Settings[K]['read']> },
  attempt: Attempt,
): Config {
  const { storageUrl, storagePresign, awsAccessKeyId, awsSecretAccessKey, awsSessionToken, ...others } =
    values;
  const { redisTlsCa, ...rest } = others;
  const given = { storageUrl, storagePresign, awsAccessKeyId, awsSecretAccessKey, awsSessionToken };
  const dataDir = resolve(values.dataDir);
  const storage = attempt(() => readStorage(given, dataDir), { kind: 'folder', directory: dataDir });
  const schedulesFile = values.schedulesFile === '' ? null : resolve(values.schedulesFile);
  const localRoots = folders(values.schedulesLocalRoots);
  return {
    ...rest,
    workers: attempt(() => countWorkers(values.workers), 1),
    dataDir,
    storage,
    filesDir: storage.kind === 'folder' ? storage.directory : resolve(dataDir, 'files'),
    inboxDir: values.inboxDir === '' ? null : resolve(values.inboxDir),
    databaseUrl: attempt(() => url('DATABASE_URL', values.databaseUrl, ['postgres:', 'postgresql:']), null),
    ...attempt(() => redis(values.redisUrl, redisTlsCa), { redisUrl: null, redisCa: null }),
    publicUrl:
      attempt(() => url('PUBLIC_URL', values.publicUrl, ['http:', 'https:']), null)?.replace(/\/+$/, '') ??
      null,
    apiKey: attempt(() => secret('API_KEY', values.apiKey), null),
    metricsToken: attempt(() => secret('METRICS_TOKEN', values.metricsToken), null),
    adminKey: attempt(() => secret('ADMIN_KEY', values.adminKey), null),
    smtpUrl: attempt(() => url('SMTP_URL', values.smtpUrl, ['smtp:', 'smtps:']), null),
    mailFrom: attempt(() => sender(values.mailFrom), values.mailFrom),
    outboxDir: resolve(dataDir, 'outbox'),
    notifyAllowPrivate: values.notifyAllowPrivate === 'true',
    notifyAllowHttp: values.notifyAllowHttp === 'true',
    schedulesFile,
    schedulesLocalRoots:
      localRoots.length === 0 && schedulesFile !== null ? [dirname(schedulesFile)] : localRoots,
    schedulesExportRoots: folders(values.schedulesExportRoots),
    schedulesAllowPrivate: values.schedulesAllowPrivate === 'true',
  };
}

function countWorkers(text: string): number {
  if (text === 'auto') return availableParallelism();
  const count = Number(text);
  if (Number.isInteger(count) && count >= 0 && count <= 256) return count;
  throw new ConfigError(`WORKERS: ${JSON.stringify(text)} is neither auto nor a whole number from 0 to 256`);
}

function folders(list: string): string[] {
  return list
    .split(',')
    .map((folder) => folder.trim())
    .filter((folder) => folder !== '')
    .map((folder) => resolve(folder));
}

function url(name: string, value: string, protocols: readonly string[]): string | null {
  if (value === '') return null;
  if (URL.canParse(value) && protocols.includes(new URL(value).protocol)) return value;
  // The value is not shown: it may hold a password.
  throw new ConfigError(`${name}: a URL that begins with ${protocols.join('// or ')}// is wanted`);
}

function redis(redisUrl: string, caFile: string): Pick<Config, 'redisUrl' | 'redisCa'> {
  const target = redisUrl === '' ? null : readRedisUrl(redisUrl);
  if (caFile === '') return { redisUrl: target === null ? null : redisUrl, redisCa: null };
  if (target?.tls !== true)
    throw new ConfigError('REDIS_TLS_CA: it means nothing without a REDIS_URL for TLS (rediss…)');
  return { redisUrl, redisCa: certificates('REDIS_TLS_CA', caFile) };
}

function certificates(name: string, file: string): string {
  let pem: string;
  try {
    pem = readFileSync(file, 'utf8');
  } catch (error) {
    throw new ConfigError(`${name}: the file cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
  if (pem.includes('-----BEGIN CERTIFICATE-----')) return pem;
  throw new ConfigError(`${name}: the file holds no certificate in PEM`);
}

function secret(name: string, value: string): string | null {
  if (value === '') return null;
  if (/^[\x21-\x7e]{20,200}$/.test(value)) return value;
  throw new ConfigError(`${name}: 20 to 200 printable characters without spaces are wanted`);
}

function sender(value: string): string {
  if (isMailAddress(value)) return value;
  throw new ConfigError('MAIL_FROM: one plain address such as sluice@example.com is wanted');
}
