/**
 * Reads the configuration from the environment and flags, once per process. The result is passed to
 * the code that needs it.
 */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Static, type TProperties, Type } from 'typebox';
import { ConfigError } from './errors.ts';
import { findProblems } from './operator-file/schema.ts';
import { readRedisUrl } from './redis-url.ts';
import { type Setting, settings, withoutSecrets } from './settings.ts';
import { readStorage, type Storage, type StorageSettings } from './storage-url.ts';

type Settings = typeof settings;
type Values = { readonly [K in keyof Settings]: Static<Settings[K]['schema']> };

/** Do not log URLs and keys: they contain secrets. */
export type Config = Omit<Values, 'redisTlsCa' | keyof StorageSettings> & {
  readonly storage: Storage;
  /** Absolute path of the folder that stores files. Not used if files are stored on S3. */
  readonly filesDir: string;
  /**
   * Certificate authorities for Redis, in PEM. If `null`, the authorities that are built into Node
   * are used.
   */
  readonly redisCa: string | null;
  readonly outboxDir: string;
  readonly workerPoolSize: number;
};

interface SettingInForce {
  readonly name: string;
  readonly value: string;
  /** `environment` includes .env. */
  readonly source: 'flag' | 'environment' | 'file' | 'default';
  readonly meaning: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

const byKey = Object.entries<Setting>(settings);
const schema = Type.Object(
  Object.fromEntries(byKey.map(([key, setting]) => [key, setting.schema])) as TProperties,
);

/**
 * Reads and checks all settings. `overrides` come from flags. The variable NAME_FILE may name a
 * file with the value of NAME, as is usual for container secrets. `others` are problems that were
 * found earlier. The error lists them first.
 * @throws ConfigError that names every faulty setting and its rule.
 */
export function readConfig(
  environment: Environment,
  overrides: Environment = {},
  others: readonly string[] = [],
): Config {
  const problems = [...others];
  const attempt: Attempt = (work, fallback) => {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      problems.push(error.message);
      return fallback;
    }
  };
  const values: Record<string, unknown> = {};
  for (const [key, { name, fallback, parse }] of byKey) {
    const text = overrides[name] ?? attempt(() => readSettingText(name, environment), undefined);
    values[key] = parse(text === undefined || text === '' ? fallback : text);
  }
  for (const { keys, what } of findProblems(schema, values)) {
    const key = keys[0] as keyof Settings;
    const { name, fallback, parse }: Setting = settings[key];
    problems.push(`${name}: ${what}`);
    // A fallback replaces each faulty value, so that `derive` can run and report further problems.
    values[key] = parse(fallback);
  }
  const config = derive(values as Values, attempt);
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
  return Object.freeze(config);
}

/**
 * Reads NAME, or the file that NAME_FILE names.
 * @throws ConfigError
 */
export function readSettingText(name: string, environment: Environment): string | undefined {
  const value = environment[name] ?? '';
  const file = environment[`${name}_FILE`] ?? '';
  if (file === '') return value;
  if (value !== '') throw new ConfigError(`${name}: set ${name} or ${name}_FILE, not both`);
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ConfigError(`${name}: the file that ${name}_FILE names cannot be read (${code})`);
  }
}

/**
 * If `work` fails, records the problem and returns `fallback`, so that all problems are reported
 * together.
 */
type Attempt = <T>(work: () => T, fallback: T) => T;

export function showSettings(environment: Environment, overrides: Environment): SettingInForce[] {
  return byKey.map(([, setting]) => show(setting, environment, overrides));
}

function show(setting: Setting, environment: Environment, overrides: Environment): SettingInForce {
  const { name, fallback, meaning } = setting;
  const flag = overrides[name] ?? '';
  const value = environment[name] ?? '';
  const file = environment[`${name}_FILE`] ?? '';
  const shown = (text: string): string => withoutSecrets(setting, text);
  if (flag !== '') return { name, value: shown(flag), source: 'flag', meaning };
  if (value !== '') return { name, value: shown(value), source: 'environment', meaning };
  if (file !== '') return { name, value: `what ${file} holds`, source: 'file', meaning };
  return { name, value: fallback, source: 'default', meaning };
}

/**
 * A worker has this many connections for leases and capabilities, and one for each chunk that it
 * loads at the same time.
 */
const extraConnections = 4;

function derive(values: Values, attempt: Attempt): Config {
  const { storageUrl, storagePresign, awsAccessKeyId, awsSecretAccessKey, awsSessionToken, ...others } =
    values;
  const { redisTlsCa, ...rest } = others;
  const { dataDir, redisUrl, publicUrl } = rest;
  const storageSettings = { storageUrl, storagePresign, awsAccessKeyId, awsSecretAccessKey, awsSessionToken };
  const storage = attempt(() => readStorage(storageSettings, dataDir), {
    kind: 'folder',
    directory: dataDir,
  });
  return {
    ...rest,
    storage,
    filesDir: storage.kind === 'folder' ? storage.directory : resolve(dataDir, 'files'),
    redisCa: attempt(() => readRedisCa(redisUrl, redisTlsCa), null),
    publicUrl: publicUrl?.replace(/\/+$/, '') ?? null,
    outboxDir: resolve(dataDir, 'outbox'),
    workerPoolSize: rest.workerConcurrency + extraConnections,
  };
}

function readRedisCa(redisUrl: string | null, caFile: string | null): string | null {
  const target = redisUrl === null ? null : readRedisUrl(redisUrl);
  if (caFile === null) return null;
  if (target?.tls !== true)
    throw new ConfigError('REDIS_TLS_CA: it means nothing without a REDIS_URL for TLS (rediss…)');
  return readCertificates('REDIS_TLS_CA', caFile);
}

function readCertificates(name: string, file: string): string {
  let pem: string;
  try {
    pem = readFileSync(file, 'utf8');
  } catch (error) {
    throw new ConfigError(`${name}: the file cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
  if (pem.includes('-----BEGIN CERTIFICATE-----')) return pem;
  throw new ConfigError(`${name}: the file holds no certificate in PEM`);
}
