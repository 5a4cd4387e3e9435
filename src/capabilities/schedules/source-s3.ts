import { basename } from 'node:path';
import { GetObjectCommand, ListObjectsV2Command, type S3Client } from '@aws-sdk/client-s3';
import { forbiddenAddress, guardedLookup, requireAllowedHost } from '../../base/http-client.ts';
import { nextOf, walkPages } from '../../base/pages.ts';
import { openClient } from '../../files/s3-bucket.ts';
import type { ScheduleSettings } from './context.ts';
import type { SourceDefinition } from './schema.ts';
import {
  fillIn,
  type IsDone,
  MAX_RUN_ITEMS,
  type OpenItem,
  type Source,
  SourceFailure,
  type SourceItem,
} from './source.ts';
import { SOURCE_CONNECT_MS } from './source-http.ts';

/* Import this module only on demand, because the AWS SDK takes long to load. */

/**
 * Maximum number of items that are found, which is one more than a run loads. The extra item shows
 * that items remain.
 */
const usualItems = MAX_RUN_ITEMS + 1;

interface BucketObject {
  readonly key: string;
  readonly version: string | null;
  readonly at: number;
}

interface Bucket {
  readonly client: S3Client;
  readonly name: string;
  readonly prefix: string;
}

/** Lists all keys to find the oldest objects, because S3 sorts them by name. */
export function openS3(
  { url, region = 'us-east-1', endpoint, access_key: user, secret_key: secret }: SourceDefinition<'s3'>,
  { variables, allowPrivate }: Pick<ScheduleSettings, 'variables' | 'allowPrivate'>,
  mostItems = usualItems,
): Source {
  const credentials = {
    accessKeyId: fillIn(user, variables),
    secretAccessKey: fillIn(secret, variables),
    sessionToken: null,
  };
  const place = { endpoint: endpoint ?? null, region, pathStyle: endpoint !== undefined, credentials };
  const reach = allowPrivate ? 'any' : 'public';
  const client = openClient(place, SOURCE_CONNECT_MS, guardedLookup(reach));
  const [, name = '', prefix = ''] = /^s3:\/\/([^/]+)\/?(.*)$/s.exec(url) ?? [];
  const bucket: Bucket = { client, name, prefix };
  return {
    async list(isDone, signal) {
      try {
        // Checks a host that is an IP address. Host names are checked when they are resolved.
        if (endpoint !== undefined) requireAllowedHost(new URL(endpoint).hostname, reach);
        return (await listOldest(bucket, isDone, mostItems, signal)).map((each) => itemOf(bucket, each));
      } catch (error) {
        throw signal.aborted ? signal.reason : asFailure(error, `s3://${name}`);
      }
    },
    close: () => client.destroy(),
  };
}

function itemOf(bucket: Bucket, { key, version, at }: BucketObject): SourceItem {
  return {
    key,
    filename: basename(key),
    version,
    open: (_, signal) =>
      openObject(bucket, { key, version, at }, signal).catch((error: unknown) => {
        throw signal.aborted ? signal.reason : asFailure(error, key);
      }),
  };
}

async function listOldest(
  { client, name, prefix }: Bucket,
  isDone: IsDone,
  mostItems: number,
  signal: AbortSignal,
): Promise<BucketObject[]> {
  let oldest: BucketObject[] = [];
  const read = async (last: string | null) => {
    const command = new ListObjectsV2Command({
      Bucket: name,
      Prefix: prefix,
      StartAfter: last ?? undefined,
    });
    const page = await client.send(command, { abortSignal: signal });
    const { Contents: listed = [] } = page;
    return { listed, next: nextOf(listed, page.IsTruncated === true, ({ Key }) => Key ?? null) };
  };
  for await (const { listed } of walkPages(null, read)) {
    for (const { Key, ETag, Size, LastModified } of listed) {
      // Some tools store a folder as an object whose name ends with a slash.
      if (Key === undefined || Key.endsWith('/') || Size === 0) continue;
      const version = ETag === undefined || ETag === '' ? null : ETag;
      if (!isDone(Key, version)) oldest.push({ key: Key, version, at: LastModified?.getTime() ?? 0 });
    }
    oldest.sort((a, b) => a.at - b.at || (a.key < b.key ? -1 : 1));
    oldest = oldest.slice(0, mostItems);
  }
  return oldest;
}

async function openObject(
  { client, name }: Bucket,
  { key, version }: BucketObject,
  signal: AbortSignal,
): Promise<OpenItem> {
  const command = new GetObjectCommand({
    Bucket: name,
    Key: key,
    IfMatch: version ?? undefined,
  });
  const { Body, ContentType, ContentEncoding } = await client.send(command, { abortSignal: signal });
  const body = Body as (AsyncIterable<Uint8Array> & { destroy(): void }) | undefined;
  if (body === undefined) throw new SourceFailure('unreadable_object', `${key} has no content`);
  return {
    bytes: body,
    version,
    hints: { contentType: ContentType, contentEncodingGzip: ContentEncoding === 'gzip' },
    close: async () => body.destroy(),
  };
}

interface SdkError {
  readonly name?: string;
  readonly code?: string;
  readonly message: string;
  readonly $metadata?: { readonly httpStatusCode?: number };
}

function asFailure(error: unknown, what: string): SourceFailure {
  if (error instanceof SourceFailure) return error;
  const { name = 'Error', code, message, $metadata } = error as SdkError;
  if (code === forbiddenAddress) {
    return new SourceFailure('private_address', `${message}; SCHEDULES_ALLOW_PRIVATE would have to allow it`);
  }
  const status = $metadata?.httpStatusCode;
  // Status 412: the object was replaced after it was listed.
  const isTransient = status === undefined || status >= 500 || status === 429 || status === 412;
  return new SourceFailure('s3_failed', `${what} cannot be read: ${name}`, { isTransient, cause: error });
}
