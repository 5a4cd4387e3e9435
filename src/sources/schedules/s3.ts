import { basename } from 'node:path';
import type { S3Client } from '@aws-sdk/client-s3';
import { SOURCE_CONNECT_MS } from '../../domain/limits.ts';
import type { S3Definition } from './schedule.ts';
import {
  fillIn,
  type OpenItem,
  type Source,
  SourceFailure,
  type SourceItem,
  type Variables,
} from './source.ts';

/** Keys that a listing looks at; more are left for another prefix. */
const mostKeys = 100_000;

interface Listed {
  readonly key: string;
  readonly etag: string;
  readonly at: number;
}

/** Objects under a prefix, oldest first. The library is loaded when it is needed: it takes its time. */
export async function openS3(definition: S3Definition, variables: Variables): Promise<Source> {
  const sdk = await import('@aws-sdk/client-s3');
  const client = new sdk.S3Client({
    region: definition.region ?? 'us-east-1',
    maxAttempts: 2,
    requestHandler: {
      connectionTimeout: SOURCE_CONNECT_MS,
      requestTimeout: SOURCE_CONNECT_MS,
      throwOnRequestTimeout: true,
    },
    ...(definition.endpoint !== null && { endpoint: definition.endpoint, forcePathStyle: true }),
    ...(definition.accessKey !== null &&
      definition.secretKey !== null && {
        credentials: {
          accessKeyId: fillIn(definition.accessKey, variables),
          secretAccessKey: fillIn(definition.secretKey, variables),
        },
      }),
  });
  const { bucket } = definition;
  const list = async (signal: AbortSignal): Promise<Listed[]> => {
    const found: Listed[] = [];
    for (let token: string | undefined; ; ) {
      const command = new sdk.ListObjectsV2Command({
        Bucket: bucket,
        Prefix: definition.prefix,
        ContinuationToken: token,
      });
      const page = await client.send(command, { abortSignal: signal });
      for (const { Key, ETag, Size, LastModified } of page.Contents ?? []) {
        // What ends in a slash is a folder as some tools make them.
        if (Key === undefined || Key.endsWith('/') || Size === 0) continue;
        found.push({ key: Key, etag: ETag ?? '', at: LastModified?.getTime() ?? 0 });
      }
      token = page.NextContinuationToken;
      if (token === undefined || found.length >= mostKeys) return found;
    }
  };
  const openObject = async ({ key, etag }: Listed, signal: AbortSignal): Promise<OpenItem> => {
    const command = new sdk.GetObjectCommand({
      Bucket: bucket,
      Key: key,
      ...(etag !== '' && { IfMatch: etag }),
    });
    const { Body, ContentType, ContentEncoding } = await client.send(command, { abortSignal: signal });
    const body = Body as (AsyncIterable<Uint8Array> & { destroy(): void }) | undefined;
    if (body === undefined) throw new SourceFailure('unreadable_object', `${key} has no content`);
    return {
      bytes: body,
      version: etag === '' ? null : etag,
      hints: { contentType: ContentType, contentEncodingGzip: ContentEncoding === 'gzip' },
      check: async () => undefined,
      close: async () => body.destroy(),
    };
  };
  return {
    async list(signal) {
      const found = await list(signal).catch((error: unknown) => {
        throw signal.aborted ? signal.reason : asFailure(error, `s3://${bucket}`);
      });
      found.sort((a, b) => a.at - b.at || (a.key < b.key ? -1 : 1));
      return found.map(
        (each): SourceItem => ({
          key: each.key,
          filename: basename(each.key),
          version: each.etag === '' ? null : each.etag,
          open: (_, own) =>
            openObject(each, own).catch((error: unknown) => {
              throw own.aborted ? own.reason : asFailure(error, each.key);
            }),
        }),
      );
    },
    close: async () => (client as S3Client).destroy(),
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
