/**
 * All settings with their names, defaults and meanings. `readConfig` reads the settings.
 * docs/configuration.md and .env.example are generated from this file.
 */
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import ipaddr from 'ipaddr.js';
import { type TSchema, Type } from 'typebox';
import { GiB } from './bytes.ts';
import { MAX_EVENT_RETENTION_DAYS } from './limits.ts';
import { isMailAddress } from './mail-address.ts';
import { choice, rule } from './operator-file/schema.ts';

const DEFAULT_MAX_UPLOAD_BYTES = 10 * GiB;
const DEFAULT_MAX_INFLATED_BYTES = 50 * GiB;

// A kind defines how text becomes a value, and the schema of that value. Only the table below uses
// kinds.

interface Kind<S extends TSchema = TSchema> {
  readonly name?: string;
  readonly fallback: string;
  readonly meaning: string;
  readonly schema: S;
  /**
   * Returns the parsed value. If the text cannot be parsed, returns the text, which then violates
   * the schema.
   */
  readonly parse: (text: string) => unknown;
  /** True if the value is never shown. Passwords in URLs are hidden in any case. */
  readonly secret?: boolean;
}

export interface Setting<S extends TSchema = TSchema> extends Kind<S> {
  readonly name: string;
}

const asIs = (text: string) => text;
const orNull = (text: string) => (text === '' ? null : text);
const number = (text: string) => (/^\d+$/.test(text) ? Number(text) : text);

function text(fallback: string, meaning: string, secret = false) {
  return { fallback, meaning, schema: Type.String(), parse: asIs, secret };
}

/** Empty text means `null`. */
function optionalText(meaning: string) {
  return { fallback: '', meaning, schema: Type.Union([Type.Null(), Type.String()]), parse: orNull };
}

function optionalPath(meaning: string) {
  return { ...optionalText(meaning), parse: (path: string) => (path === '' ? null : resolve(path)) };
}

const items = (list: string) =>
  list
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');

function folders(meaning: string) {
  const parse = (list: string) => items(list).map((path) => resolve(path));
  return { fallback: '', meaning, schema: Type.Array(Type.String()), parse };
}

/** A list of items such as `environment:VARIABLE`. */
function grants(meaning: string) {
  const problem = rule('must be items such as default:SCHEDULE_TOKEN, with commas between');
  const item = Type.String({ pattern: '^[a-z0-9][a-z0-9_-]{0,62}:SCHEDULE_[A-Z0-9_]{1,100}$', problem });
  return { fallback: '', meaning, schema: Type.Array(item), parse: items };
}

function networks(meaning: string) {
  const problem = rule('must be IP addresses or networks such as 10.0.0.0/8, with commas between');
  const schema = Type.Array(Type.String(), { problem });
  const parse = (list: string) =>
    items(list).every((text) => ipaddr.isValid(text) || ipaddr.isValidCIDR(text)) ? items(list) : list;
  return { fallback: '', meaning, schema, parse };
}

function integer(fallback: string, meaning: string, minimum: number, maximum: number) {
  return { fallback, meaning, schema: Type.Integer({ minimum, maximum }), parse: number };
}

function workerCount(meaning: string) {
  const problem = rule('must be auto or a whole number from 0 to 256');
  const schema = Type.Integer({ minimum: 0, maximum: 256, problem });
  const parse = (count: string) => (count === 'auto' ? availableParallelism() : number(count));
  return { fallback: 'auto', meaning, schema, parse };
}

const units: Readonly<Record<string, number>> = { '': 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 };

function bytes(fallback: string, meaning: string) {
  const problem = rule('must be a number of bytes such as 512m or 10g');
  const schema = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, problem });
  const parse = (size: string) => {
    const match = /^(\d+)\s*([kmgt]?)i?b?$/i.exec(size);
    return match === null ? size : Number(match[1]) * (units[match[2]?.toLowerCase() ?? ''] ?? Number.NaN);
  };
  return { fallback, meaning: `${meaning} Bytes, or with a unit: 64k, 10m, 2g.`, schema, parse };
}

function oneOf<const T extends string>(fallback: T, meaning: string, allowed: readonly T[]) {
  const schema = choice(allowed, meaning);
  return { fallback, meaning: `${meaning} One of ${allowed.join(', ')}.`, schema, parse: asIs };
}

const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 };

/** Returns milliseconds. `null` unless the text is between 1s and 24h. */
function readDuration(text: string): number | null {
  const [, count = '0', unit = 's'] = /^(\d{1,5})([smh])$/.exec(text) ?? [];
  const ms = Number(count) * (unitMs[unit] ?? 0);
  return ms > 0 && ms <= 24 * 3_600_000 ? ms : null;
}

function optionalDuration(meaning: string) {
  const problem = rule('must be a time from 1s to 24h, such as 30s, 15m or 1h');
  const parse = (text: string) => readDuration(text) ?? orNull(text);
  const schema = Type.Union([Type.Null(), Type.Integer()], { problem });
  return { fallback: '', meaning, schema, parse };
}

function rate(meaning: string) {
  const problem = rule('must be a number in a time from 1s to 24h, such as 10/1s or 600/1m');
  const schema = Type.Union([Type.Null(), Type.Object({ count: Type.Integer(), windowMs: Type.Integer() })], {
    problem,
  });
  const parse = (text: string) => {
    const [, count = '', time = ''] = /^([1-9]\d{0,8})\/(\w+)$/.exec(text) ?? [];
    const windowMs = readDuration(time);
    return windowMs === null ? orNull(text) : { count: Number(count), windowMs };
  };
  return { fallback: '', meaning, schema, parse };
}

function flag(fallback: 'true' | 'false', meaning: string) {
  const parse = (text: string) => {
    if (text === 'true') return true;
    return text === 'false' ? false : text;
  };
  return { fallback, meaning: `${meaning} One of true, false.`, schema: Type.Boolean(), parse };
}

/** The message does not quote the value, because the value may contain a password. */
function url(protocols: readonly string[], meaning: string) {
  const isOne = (text: string) =>
    URL.canParse(text) && protocols.includes(new URL(text).protocol.slice(0, -1));
  const schema = Type.Union([Type.Null(), Type.Refine(Type.String(), isOne)], {
    problem: () => `must be a URL that begins with ${protocols.join(':// or ')}://`,
  });
  return { fallback: '', meaning, schema, parse: orNull };
}

/**
 * Replaces SSL modes that the driver treats as `verify-full`. Otherwise, the driver would warn at
 * every start that a later version will treat those modes as weaker.
 */
function postgresUrl(meaning: string) {
  const parse = (text: string) =>
    orNull(
      text.includes('uselibpqcompat=')
        ? text
        : text.replace(/([?&]sslmode=)(?:prefer|require|verify-ca)(?=&|$)/, '$1verify-full'),
    );
  return { ...url(['postgres', 'postgresql'], meaning), parse };
}

function secretKey(meaning: string) {
  const schema = Type.Union([Type.Null(), Type.String({ pattern: '^[\\x21-\\x7e]{20,200}$' })], {
    problem: () => 'must be 20 to 200 printable characters without spaces',
  });
  return { fallback: '', meaning, schema, parse: orNull, secret: true };
}

function mailAddress(fallback: string, meaning: string) {
  const sentence = 'must be one plain address such as sluice@example.com';
  const schema = Type.Refine(Type.String(), isMailAddress, () => sentence);
  return { fallback, meaning, schema, parse: asIs };
}

/** Masks secret values, and passwords in URLs. */
export function withoutSecrets({ secret }: Pick<Setting, 'secret'>, value: string): string {
  if (secret !== true) return hidePasswords(value);
  return value === '' ? '' : hidden;
}

const hidden = '***';

/** Hides passwords up to the last `@`, because a password may contain an unescaped `@`. */
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
