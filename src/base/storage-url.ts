import { resolve } from 'node:path';
import { ConfigError } from './errors.ts';

export interface S3Location {
  readonly url: string;
  readonly bucket: string;
  /** Prefix of all object names, without slashes at its ends. May be empty. */
  readonly prefix: string;
  /** URL of the server. `null` for Amazon's server in the region. */
  readonly endpoint: string | null;
  /** Region of the bucket. `null` if the SDK determines it (AWS_REGION, profile). */
  readonly region: string | null;
  /** True if the bucket is in the path of a URL, false if it is in the host name. */
  readonly pathStyle: boolean;
  readonly presign: boolean;
  /**
   * Do not log the credentials. `null` if the SDK finds them itself (profile, role of the machine
   * or pod).
   */
  readonly credentials: S3Credentials | null;
}

interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string | null;
}

export type Storage = StorageFolder | ({ readonly kind: 's3' } & S3Location);

interface StorageFolder {
  readonly kind: 'folder';
  readonly directory: string;
}

export interface StorageSettings {
  readonly storageUrl: string;
  readonly storagePresign: boolean;
  readonly awsAccessKeyId: string;
  readonly awsSecretAccessKey: string;
  readonly awsSessionToken: string;
}

const parameters = ['endpoint', 'region', 'path_style'];
const bucketPattern = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
const prefixPattern = /^(?!\.{1,2}(?:\/|$))[\w.-]+(?:\/(?!\.{1,2}(?:\/|$))[\w.-]+)*$/;
const regionPattern = /^[a-z0-9-]{1,50}$/;
const maxPrefixChars = 200;

/**
 * Parses STORAGE_URL.
 * @throws ConfigError, whose message omits the URL because it may contain a password
 */
export function readStorage(settings: StorageSettings, dataDir: string): Storage {
  const { storageUrl } = settings;
  if (storageUrl === '') return { kind: 'folder', directory: resolve(dataDir, 'files') };
  if (storageUrl.startsWith('file://'))
    return { kind: 'folder', directory: resolve(new URL(storageUrl).pathname) };
  // Matches the scheme of a URL, even without its colon or slashes, but not a drive letter.
  if (!/^[a-z0-9]+(?:[a-z0-9]:|\/\/)/i.test(storageUrl))
    return { kind: 'folder', directory: resolve(storageUrl) };
  if (storageUrl.startsWith('s3://')) return { kind: 's3', ...readLocation(settings) };
  throw wrong('a folder, a file:// URL or s3://bucket/prefix is wanted');
}

function readLocation(settings: StorageSettings): S3Location {
  const { storageUrl } = settings;
  if (!URL.canParse(storageUrl)) throw wrong('s3://bucket/prefix?endpoint=…&region=… is wanted');
  const url = new URL(storageUrl);
  if (url.username !== '' || url.password !== '') {
    throw wrong('credentials do not belong into it, but into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY');
  }
  if (url.host === '') throw wrong('it names no bucket: s3://bucket/prefix');
  if (!bucketPattern.test(url.host) || url.host.includes('..')) {
    throw wrong('a bucket has 3 to 63 lower-case letters, digits, dots and dashes, and no port');
  }
  checkParameters(url);
  const endpoint = readEndpoint(url.searchParams.get('endpoint'));
  return {
    url: storageUrl,
    bucket: url.host,
    prefix: readPrefix(url.pathname),
    endpoint,
    region: readRegion(url.searchParams.get('region'), endpoint),
    pathStyle: readPathStyle(url.searchParams.get('path_style'), endpoint),
    presign: settings.storagePresign,
    credentials: readCredentials(settings),
  };
}

function checkParameters({ searchParams, hash }: URL): void {
  for (const name of new Set(searchParams.keys())) {
    const names = parameters.join(', ');
    if (!parameters.includes(name))
      throw wrong(`unknown parameter ${JSON.stringify(name.slice(0, 50))}; there are ${names}`);
    if (searchParams.getAll(name).length > 1) throw wrong(`the parameter ${name} is given twice`);
  }
  if (hash !== '') throw wrong('it has a part after #, which means nothing');
}

function readPrefix(path: string): string {
  const prefix = path.replace(/^\/+|\/+$/g, '');
  if (prefix === '' || (prefixPattern.test(prefix) && prefix.length <= maxPrefixChars)) return prefix;
  throw wrong(
    `the prefix may have letters, digits, dots, dashes, underscores and single slashes, ${maxPrefixChars} in all`,
  );
}

function readEndpoint(text: string | null): string | null {
  if (text === null) return null;
  const url = URL.canParse(text) ? new URL(text) : null;
  const isPlain = url !== null && url.username === '' && url.pathname === '/' && url.search + url.hash === '';
  if (isPlain && ['http:', 'https:'].includes(url.protocol)) return url.origin;
  throw wrong('endpoint is wanted as http://host:port or https://host, without anything behind it');
}

/** Most servers except Amazon's ignore the region, but a signature needs one. */
function readRegion(text: string | null, endpoint: string | null): string | null {
  if (text === null) return endpoint === null ? null : 'us-east-1';
  if (regionPattern.test(text)) return text;
  throw wrong('region is wanted as in eu-central-1');
}

function readPathStyle(text: string | null, endpoint: string | null): boolean {
  if (text === null) return endpoint !== null;
  if (text === 'true' || text === 'false') return text === 'true';
  throw wrong('path_style is true or false');
}

function readCredentials(settings: StorageSettings): S3Credentials | null {
  const { awsAccessKeyId: accessKeyId, awsSecretAccessKey: secretAccessKey, awsSessionToken } = settings;
  if (accessKeyId === '' && secretAccessKey === '') return null;
  if (accessKeyId === '' || secretAccessKey === '') {
    throw new ConfigError('AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: both are wanted, or neither');
  }
  return { accessKeyId, secretAccessKey, sessionToken: awsSessionToken === '' ? null : awsSessionToken };
}

function wrong(rule: string): ConfigError {
  return new ConfigError(`STORAGE_URL: ${rule}`);
}
