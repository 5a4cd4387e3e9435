import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, resolve } from 'node:path';
import { DEFAULT_MAX_INFLATED_BYTES, DEFAULT_MAX_UPLOAD_BYTES } from './domain/limits.ts';
import { isMailAddress } from './domain/mail-address.ts';
import { readRedisUrl } from './queue/redis-url.ts';
import { bytes, ConfigError, integer, oneOf, type Setting, text } from './setting.ts';
import { readStorage, type Storage, type StorageSettings } from './storage-url.ts';

const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'silent'] as const;

/** Every setting there is. `.env.example` and docs/configuration.md are checked against this list. */
export const settings = {
  host: text('HOST', '127.0.0.1', 'Address the HTTP server listens on; 0.0.0.0 for every interface.'),
  port: integer('PORT', '8080', 'Port of the HTTP server; 0 takes any free one.', 0, 65_535),
  publicUrl: text(
    'PUBLIC_URL',
    '',
    'Address that callers reach the server by, for links; default: the address listened on.',
  ),
  dataDir: text('DATA_DIR', '.sluice', 'Folder for the embedded PostgreSQL, received files and rejects.'),
  databaseUrl: text('DATABASE_URL', '', 'PostgreSQL 15 or newer; empty: one is started in DATA_DIR.'),
  redisUrl: text(
    'REDIS_URL',
    '',
    'Redis for the queue: redis://host:port, redis+sentinel://host:port,host:port/master or redis+cluster://host:port,host:port (rediss… for TLS); empty: the queue lives in PostgreSQL.',
  ),
  redisTlsCa: text(
    'REDIS_TLS_CA',
    '',
    'File with the certificates (PEM) that may have signed that of Redis; empty: the public authorities.',
  ),
  storageUrl: text(
    'STORAGE_URL',
    '',
    'Where received files and exports are kept: a folder (file:///path), or s3://bucket/prefix?endpoint=…&region=…&path_style=true; empty: DATA_DIR/files.',
  ),
  storagePresign: oneOf(
    'STORAGE_PRESIGN',
    'true',
    'With files on S3: whether links to files of exports are answered by S3 itself; false: by this server.',
    ['true', 'false'],
  ),
  awsAccessKeyId: text(
    'AWS_ACCESS_KEY_ID',
    '',
    'Key for S3; empty: what the AWS SDK finds (profile, role of the machine).',
  ),
  awsSecretAccessKey: text('AWS_SECRET_ACCESS_KEY', '', 'Its secret.'),
  awsSessionToken: text('AWS_SESSION_TOKEN', '', 'Its session token, if it is a temporary one.'),
  inboxDir: text(
    'INBOX_DIR',
    '',
    'Folder that is watched for files to load, INBOX_DIR/<environment>/ for each environment (docs/inbox.md); empty: none is.',
  ),
  inboxScanMs: integer(
    'INBOX_SCAN_MS',
    '2000',
    'Milliseconds between two looks into the inbox.',
    20,
    3_600_000,
  ),
  inboxSettleMs: integer(
    'INBOX_SETTLE_MS',
    '5000',
    'Milliseconds that a file in the inbox must not have changed for before it is taken; two looks at least.',
    0,
    3_600_000,
  ),
  apiKey: text(
    'API_KEY',
    '',
    'If set, the environment `default` accepts this key too (20 characters or more).',
  ),
  metricsToken: text(
    'METRICS_TOKEN',
    '',
    'If set, /metrics wants `Authorization: Bearer` with it (20 to 200 characters); empty: open to all.',
  ),
  adminKey: text(
    'ADMIN_KEY',
    '',
    'If set, /admin/queues shows the queue to whoever logs in as `admin` with it (20 to 200 characters); empty: there is no such page.',
  ),
  logLevel: oneOf('LOG_LEVEL', 'info', 'Least level that is logged.', logLevels),
  workers: text(
    'WORKERS',
    'auto',
    'Worker processes of `sluice start` and `sluice import`; auto: one per core.',
  ),
  workerConcurrency: integer(
    'WORKER_CONCURRENCY',
    '1',
    'Chunks that one worker process merges at a time.',
    1,
    64,
  ),
  poolSize: integer('POOL_SIZE', '10', 'PostgreSQL connections of the serving process.', 2, 500),
  workerPoolSize: integer('WORKER_POOL_SIZE', '5', 'PostgreSQL connections of a worker process.', 3, 500),
  maxUploadBytes: bytes('MAX_UPLOAD_BYTES', String(DEFAULT_MAX_UPLOAD_BYTES), 'Largest upload, as sent.'),
  maxInflatedBytes: bytes(
    'MAX_INFLATED_BYTES',
    String(DEFAULT_MAX_INFLATED_BYTES),
    'Largest upload, decompressed.',
  ),
  minUploadRate: integer(
    'MIN_UPLOAD_RATE',
    '1024',
    'Bytes per second below which an upload is given up; 0: never.',
    0,
    2 ** 30,
  ),
  uploadStallMs: integer(
    'UPLOAD_STALL_MS',
    '30000',
    'Milliseconds without a byte after which an upload is given up; a single record must have come within them.',
    100,
    3_600_000,
  ),
  rateLimit: integer(
    'RATE_LIMIT',
    '0',
    'Requests per second that one API key may make to one serving process; 0: as many as it likes.',
    0,
    1_000_000,
  ),
  rateLimitWindowMs: integer(
    'RATE_LIMIT_WINDOW_MS',
    '1000',
    'Milliseconds over which RATE_LIMIT is counted; what a longer one allows may come in one burst.',
    1_000,
    3_600_000,
  ),
  maxEventLoopDelayMs: integer(
    'MAX_EVENT_LOOP_DELAY_MS',
    '1000',
    'Mean delay of the event loop, over a second, above which requests are answered 503; 0: never.',
    0,
    60_000,
  ),
  chunkBytes: bytes(
    'CHUNK_BYTES',
    '2097152',
    'Target length of a chunk: the unit of work, retry and parallelism.',
  ),
  fileRetentionDays: integer(
    'FILE_RETENTION_DAYS',
    '30',
    'Days that received files are kept after their load ended.',
    0,
    36_500,
  ),
  jobRetentionDays: integer(
    'JOB_RETENTION_DAYS',
    '365',
    'Days that job records and rejects are kept after the job ended.',
    0,
    36_500,
  ),
  exportRetentionDays: integer(
    'EXPORT_RETENTION_DAYS',
    '7',
    'Days that the files of an export are kept after it ended.',
    0,
    36_500,
  ),
  linkTtlHours: integer(
    'LINK_TTL_HOURS',
    '48',
    'Hours that a link to a file of an export is good for; asking for the job again gives new ones.',
    1,
    876_000,
  ),
  smtpUrl: text(
    'SMTP_URL',
    '',
    'Mail server for messages about jobs: smtp://user:password@host:587, smtps:// for TLS from the start; empty: they are written to DATA_DIR/outbox.',
  ),
  mailFrom: text('MAIL_FROM', 'sluice@localhost', 'Address that messages about jobs come from.'),
  notifyAllowPrivate: oneOf(
    'NOTIFY_ALLOW_PRIVATE',
    'false',
    'Whether webhooks may lead to this machine and to private networks.',
    ['false', 'true'],
  ),
  notifyAllowHttp: oneOf('NOTIFY_ALLOW_HTTP', 'false', 'Whether webhooks may lead to http:// addresses.', [
    'false',
    'true',
  ]),
  schedulesFile: text(
    'SCHEDULES_FILE',
    '',
    'File with the schedules of loads and exports (docs/schedules.md); empty: there are none.',
  ),
  schedulesLocalRoots: text(
    'SCHEDULES_LOCAL_ROOTS',
    '',
    'Folders that schedules may load files from, with commas between them; empty: the folder of SCHEDULES_FILE.',
  ),
  schedulesExportRoots: text(
    'SCHEDULES_EXPORT_ROOTS',
    '',
    'Folders that schedules may copy exports to, with commas between them; empty: none.',
  ),
  schedulesAllowPrivate: oneOf(
    'SCHEDULES_ALLOW_PRIVATE',
    'false',
    'Whether schedules that say `allow_private` may load from private networks and from this machine.',
    ['false', 'true'],
  ),
  drainMs: integer(
    'DRAIN_MS',
    '0',
    'Milliseconds that a server which is told to stop still takes requests, while /health/ready tells load balancers to send no more; SHUTDOWN_MS begins after it.',
    0,
    600_000,
  ),
  shutdownMs: integer('SHUTDOWN_MS', '25000', 'Milliseconds a graceful stop may take.', 1_000, 600_000),
} as const;

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
 * Reads the configuration. `environment` is `process.env` or a test's own; `overrides` come from flags.
 * Throws `ConfigError` that names every setting at fault and its rule.
 */
export function readConfig(
  environment: Readonly<Record<string, string | undefined>>,
  overrides: Readonly<Record<string, string | undefined>> = {},
): Config {
  const problems: string[] = [];
  const values: Record<string, unknown> = {};
  for (const [key, setting] of Object.entries<Setting<unknown>>(settings)) {
    const given = overrides[setting.name] ?? environment[setting.name];
    try {
      values[key] = setting.read(given === undefined || given === '' ? setting.fallback : given);
    } catch (error) {
      problems.push(`${setting.name}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
  return Object.freeze(derive(values as { [K in keyof Settings]: ReturnType<Settings[K]['read']> }));
}

function derive(values: { readonly [K in keyof Settings]: ReturnType<Settings[K]['read']> }): Config {
  const { storageUrl, storagePresign, awsAccessKeyId, awsSecretAccessKey, awsSessionToken, ...others } =
    values;
  const { redisTlsCa, ...rest } = others;
  const given = { storageUrl, storagePresign, awsAccessKeyId, awsSecretAccessKey, awsSessionToken };
  const dataDir = resolve(values.dataDir);
  const storage = readStorage(given, dataDir);
  const schedulesFile = values.schedulesFile === '' ? null : resolve(values.schedulesFile);
  const localRoots = folders(values.schedulesLocalRoots);
  return {
    ...rest,
    workers: countWorkers(values.workers),
    dataDir,
    storage,
    filesDir: storage.kind === 'folder' ? storage.directory : resolve(dataDir, 'files'),
    inboxDir: values.inboxDir === '' ? null : resolve(values.inboxDir),
    databaseUrl: url('DATABASE_URL', values.databaseUrl, ['postgres:', 'postgresql:']),
    ...redis(values.redisUrl, redisTlsCa),
    publicUrl: url('PUBLIC_URL', values.publicUrl, ['http:', 'https:'])?.replace(/\/+$/, '') ?? null,
    apiKey: secret('API_KEY', values.apiKey),
    metricsToken: secret('METRICS_TOKEN', values.metricsToken),
    adminKey: secret('ADMIN_KEY', values.adminKey),
    smtpUrl: url('SMTP_URL', values.smtpUrl, ['smtp:', 'smtps:']),
    mailFrom: sender(values.mailFrom),
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
