/** All settings. docs/configuration.md and .env.example are generated from them. */
import { resolve } from 'node:path';
import type { TSchema } from 'typebox';
import { GiB, MAX_EVENT_RETENTION_DAYS } from './limits.ts';
import {
  bytes,
  flag,
  folders,
  grants,
  integer,
  type Kind,
  mailAddress,
  networks,
  oneOf,
  optionalDuration,
  optionalPath,
  optionalText,
  postgresUrl,
  rate,
  secretKey,
  text,
  url,
  workerCount,
} from './setting-kinds.ts';

const DEFAULT_MAX_UPLOAD_BYTES = 10 * GiB;
const DEFAULT_MAX_INFLATED_BYTES = 50 * GiB;

export interface Setting<S extends TSchema = TSchema> extends Kind<S> {
  readonly name: string;
}

export function withoutSecrets({ secret }: Pick<Setting, 'secret'>, value: string): string {
  if (secret !== true) return hidePasswords(value);
  return value === '' ? '' : hidden;
}

const hidden = '***';

/** A password may contain an unescaped `@`. */
function hidePasswords(value: string): string {
  return value
    .replace(/(:\/\/[^:@/?]*:).*@/s, `$1${hidden}@`)
    .replace(/([?&][^=&]*(?:password|secret|token)[^=&]*=)[^&]*/gi, `$1${hidden}`);
}

const table = {
  host: text('127.0.0.1', 'Address the HTTP server listens on; 0.0.0.0 for every interface.'),
  port: integer('8080', 'Port of the HTTP server; 0 takes any free one.', 0, 65_535),
  publicUrl: url(
    ['http', 'https'],
    'Address at which callers reach the server; links start with it. Empty: links in answers use the host of the request, with https if X-Forwarded-Proto says so; links in messages use HOST and PORT.',
  ),
  trustProxy: networks(
    'IP addresses or networks of the proxies in front of the server, with commas between: from them, X-Forwarded-For names the caller; empty: none.',
  ),
  dataDir: {
    ...text('.sluice', 'Folder for the embedded PostgreSQL, received files, exports and unsent mail.'),
    parse: (path: string) => resolve(path),
  },
  databaseUrl: postgresUrl('PostgreSQL 15 or newer; empty: one is started in DATA_DIR.'),
  redisUrl: optionalText(
    'Redis for the queue: redis://host:port, redis+sentinel://host:port,host:port/master or redis+cluster://host:port,host:port (rediss… for TLS); empty: the queue lives in PostgreSQL.',
  ),
  redisTlsCa: optionalText(
    'File with the certificates (PEM) of the authorities for Redis; empty: the public ones.',
  ),
  storageUrl: text(
    '',
    'Where sluice keeps received files and exports: a folder (file:///path), or s3://bucket/prefix?endpoint=…&region=…&path_style=true; empty: DATA_DIR/files.',
  ),
  storagePresign: flag(
    'true',
    'With files on S3, links to exports lead to S3 (true), or to this server (false).',
  ),
  awsAccessKeyId: text('', 'Access key for S3; empty: the AWS SDK finds one (profile, role of the machine).'),
  awsSecretAccessKey: text('', 'Secret of the access key for S3.', true),
  awsSessionToken: text('', 'Session token of the access key for S3, if the key is temporary.', true),
  inboxDir: optionalPath(
    'Folder that sluice watches for files to load, INBOX_DIR/<environment>/ for each environment (docs/inbox.md); empty: no inbox.',
  ),
  inboxStableMs: integer(
    '5000',
    'Milliseconds that a file in the inbox must stay unchanged before it is loaded.',
    0,
    3_600_000,
  ),
  apiKey: secretKey('If set, the environment `default` accepts this key too (20 characters or more).'),
  metricsToken: secretKey(
    'If set, /metrics requires `Authorization: Bearer` with this token (20 to 200 characters); empty: open to all.',
  ),
  adminKey: secretKey(
    'If set, this key (20 to 200 characters) signs in to /console for every environment; empty: only API keys do.',
  ),
  oidcIssuer: url(
    ['https', 'http'],
    'Provider of OpenID Connect with which people sign in to /console (docs/oidc.md); needs PUBLIC_URL; empty: only keys and links do.',
  ),
  oidcClientId: optionalText('ID of sluice at the provider of OpenID Connect.'),
  oidcClientSecret: text('', 'Secret of sluice at the provider of OpenID Connect.', true),
  oidcScopes: text(
    'openid',
    'Scopes that sluice asks the provider for, with spaces between; some providers need one for groups.',
  ),
  personalKey: secretKey(
    'The secret that hashes personal values (docs/personal-data.md), 20 to 200 characters. Never change it; empty: rules cannot hash.',
  ),
  logLevel: oneOf('info', 'Lowest level that is logged.', [
    'trace',
    'debug',
    'info',
    'warn',
    'error',
    'silent',
  ]),
  workers: workerCount('Worker processes of `sluice start` and `sluice import`; auto: one per core.'),
  workerConcurrency: integer('1', 'Chunks that one worker process merges at a time.', 1, 64),
  poolSize: integer(
    '10',
    'PostgreSQL connections of a serving process; two fifths of them are for reads.',
    2,
    500,
  ),
  maxUploadBytes: bytes(String(DEFAULT_MAX_UPLOAD_BYTES), 'Largest upload, as sent.'),
  maxInflatedBytes: bytes(String(DEFAULT_MAX_INFLATED_BYTES), 'Largest upload, decompressed.'),
  uploadStallMs: integer(
    '30000',
    'Milliseconds without a byte after which the server ends an upload; also the time for a head or a single record to arrive.',
    100,
    3_600_000,
  ),
  rateLimit: rate(
    'Requests that one API key may make to one serving process in a time, such as 600/1m, also in one burst; empty: no limit.',
  ),
  maxQueuedJobs: integer(
    '10000',
    'Unfinished jobs that one environment may have; one more is answered 429; 0: no limit.',
    0,
    10_000_000,
  ),
  maxConnections: integer(
    '4096',
    'Connections that a serving process keeps open, at most half of its file descriptors. Beyond that, it closes those without a request for longest.',
    10,
    1_000_000,
  ),
  maxEventLoopDelayMs: integer(
    '1000',
    'Mean delay of the event loop over a second, in milliseconds, above which the server answers 503; 0: never.',
    0,
    60_000,
  ),
  chunkBytes: bytes('2097152', 'Target length of a chunk: the unit of work, retry and parallelism.'),
  fileRetentionDays: integer('30', 'Days that received files are kept after their load ended.', 0, 36_500),
  jobRetentionDays: integer(
    '365',
    'Days that job records and rejects are kept after the job ended.',
    0,
    36_500,
  ),
  auditDays: integer(
    '365',
    'Days that entries of the audit log are kept; 0: nothing is recorded, and what was recorded is kept.',
    0,
    36_500,
  ),
  changesDays: integer(
    '14',
    'Days that changes of users and companies are kept, for undo, history and exports of what changed; 0: none are. The server that starts last decides for all.',
    0,
    36_500,
  ),
  exportRetentionDays: integer('7', 'Days that the files of an export are kept after it ended.', 0, 36_500),
  eventRetentionDays: integer(
    '0',
    'Days that events are kept in the database; 0: for ever. Whole months are removed. Definitions can set other days by environment and event name.',
    0,
    MAX_EVENT_RETENTION_DAYS,
  ),
  lakeEveryMs: {
    ...optionalDuration(
      'How often new events are copied to the lake, an Iceberg table in the file store for other engines, such as 1h; empty: there is no lake. Events whose retention is over stay in the lake.',
    ),
    name: 'LAKE_EVERY',
  },
  smtpUrl: url(
    ['smtp', 'smtps'],
    'Mail server for messages about jobs: smtp://user:password@host:587, smtps:// for TLS from the start; empty: messages are written to DATA_DIR/outbox.',
  ),
  mailFrom: mailAddress('sluice@localhost', 'Sender address of messages about jobs.'),
  notifyAllowPrivate: flag(
    'false',
    'Whether sluice sends webhooks to this machine and to private networks, also by http://.',
  ),
  schedulesLocalRoots: folders(
    'Folders that hold a folder of each environment, from which its schedules may load files, with commas between them; empty: none.',
  ),
  schedulesExportRoots: folders(
    'Folders that hold a folder of each environment, to which its schedules may copy exports, with commas between them; empty: none.',
  ),
  schedulesVariables: grants(
    'SCHEDULE_',
    'Variables that schedules may name, each as `environment:SCHEDULE_NAME`, with commas between them; empty: none.',
  ),
  schedulesAllowPrivate: flag(
    'false',
    'Whether schedules that say `allow_private` may load from private networks and from this machine.',
  ),
  sourceCommands: optionalPath(
    'File with the commands that schedules may load the output of (docs/schedules.md); empty: none.',
  ),
  drainMs: integer(
    '0',
    'Milliseconds that a stopping server still accepts requests, while /health/ready answers 503 so that load balancers send no more. SHUTDOWN_MS begins afterwards.',
    0,
    600_000,
  ),
  shutdownMs: integer('25000', 'Milliseconds that a graceful stop may take.', 1_000, 600_000),
} satisfies Readonly<Record<string, Kind>>;

type Table = typeof table;

export const settings = Object.fromEntries(
  Object.entries(table).map(([key, kind]) => [
    key,
    { name: key.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase(), ...kind },
  ]),
) as { readonly [Key in keyof Table]: Table[Key] & { readonly name: string } };
