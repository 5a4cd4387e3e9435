import { basename } from 'node:path';
import type { S3Client } from '@aws-sdk/client-s3';
import { MAX_RUN_ITEMS, SOURCE_CONNECT_MS } from '../../domain/limits.ts';
import type { SourceDefinition } from './schedules-schema.ts';
import {
  fillIn,
  type IsDone,
  type OpenItem,
  type Source,
  SourceFailure,
  type SourceItem,
  type Variables,
} from './source.ts';

/** More than a run takes, which shows that there are others. */
const usualItems = MAX_RUN_ITEMS + 1;

interface Listed {
  readonly key: string;
  readonly version: string | null;
  readonly at: number;
}

type Definition = SourceDefinition<'s3'>;
type Sdk = typeof import('@aws-sdk/client-s3');

interface Bucket {
  readonly sdk: Sdk;
  readonly client: S3Client;
  readonly name: string;
  readonly prefix: string;
}

/**
 * Opens the oldest objects under a prefix that are not done, `mostItems` of them, oldest first. All keys are listed: S3 has them by
 * name, not by age. The library is loaded when it is needed: it takes its time.
 */
export async function openS3(
  definition: Definition,
  variables: Variables,
  mostItems = usualItems,
): Promise<Source> {
  const sdk = await import('@aws-sdk/client-s3');
  const client = openClient(sdk, definition, variables);
  const [, name = '', prefix = ''] = /^s3:\/\/([^/]+)\/?(.*)$/s.exec(definition.url) ?? [];
  const bucket: Bucket = { sdk, client, name, prefix };
  return {
    async list(isDone, signal) {
      const found = await listOldest(bucket, isDone, mostItems, signal).catch((error: unknown) => {
        throw signal.aborted ? signal.reason : asFailure(error, `s3://${bucket.name}`);
      });
      return found.map(
        (each): SourceItem => ({
          key: each.key,
          filename: basename(each.key),
          version: each.version,
          open: (_, own) =>
            openObject(bucket, each, own).catch((error: unknown) => {
              throw own.aborted ? own.reason : asFailure(error, each.key);
            }),
        }),
      );
    },
    close: () => client.destroy(),
  };
}

function openClient(sdk: Sdk, definition: Definition, variables: Variables): S3Client {
  const { region = 'us-east-1', endpoint, access_key: accessKey, secret_key: secretKey } = definition;
  return new sdk.S3Client({
    region,
    maxAttempts: 2,
    requestHandler: {
      connectionTimeout: SOURCE_CONNECT_MS,
      requestTimeout: SOURCE_CONNECT_MS,
      throwOnRequestTimeout: true,
    },
    ...(endpoint !== undefined && { endpoint, forcePathStyle: true }),
    ...(accessKey !== undefined &&
      secretKey !== undefined && {
        credentials: {
          accessKeyId: fillIn(accessKey, variables),
          secretAccessKey: fillIn(secretKey, variables),
        },
      }),
  });
}

async function listOldest(
  { sdk, client, name, prefix }: Bucket,
  isDone: IsDone,
  mostItems: number,
  signal: AbortSignal,
): Promise<Listed[]> {
  let oldest: Listed[] = [];
  for (let last: string | undefined; ; ) {
    const command = new sdk.ListObjectsV2Command({
      Bucket: name,
      Prefix: prefix,
      ...(last !== undefined && { StartAfter: last }),
    });
    const page = await client.send(command, { abortSignal: signal });
    const listed = page.Contents ?? [];
    for (const { Key, ETag, Size, LastModified } of listed) {
      // Some tools make folders as objects whose names end in a slash.
      if (Key === undefined || Key.endsWith('/') || Size === 0) continue;
      const version = ETag === undefined || ETag === '' ? null : ETag;
      if (!isDone(Key, version)) oldest.push({ key: Key, version, at: LastModified?.getTime() ?? 0 });
    }
    oldest.sort((a, b) => a.at - b.at || (a.key < b.key ? -1 : 1));
    oldest = oldest.slice(0, mostItems);
    last = listed.at(-1)?.Key;
    if (page.IsTruncated !== true || last === undefined) return oldest;
  }
}

async function openObject(
  { sdk, client, name }: Bucket,
  { key, version }: Listed,
  signal: AbortSignal,
): Promise<OpenItem> {
  const command = new sdk.GetObjectCommand({
    Bucket: name,
    Key: key,
    ...(version !== null && { IfMatch: version }),
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

function asFailure(error: unknown, what: string): SourceFailure {
  if (error instanceof SourceFailure) return error;
  const { name = 'Error', $metadata } = error as { name?: string; $metadata?: { httpStatusCode?: number } };
  const status = $metadata?.httpStatusCode;
  // 412: it was replaced since it was listed.
  const passing = status === undefined || status >= 500 || status === 429 || status === 412;
  return new SourceFailure('s3_failed', `${what} cannot be read: ${name}`, { passing, cause: error });
}
