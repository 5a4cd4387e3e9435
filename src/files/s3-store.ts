import type { Readable } from 'node:stream';
import { messageOf, TransientError } from '../base/errors.ts';
import { MiB, S3_ATTEMPTS } from '../base/limits.ts';
import { growing, wait } from '../base/retry.ts';
import type { S3Location } from '../base/storage-url.ts';
import {
  checkFolder,
  checkRef,
  createRef,
  type FileRef,
  type FileStore,
  isRef,
  streamOf,
} from './file-store.ts';
import type { OpenObject, S3Bucket } from './s3-bucket.ts';
import { S3Writer } from './s3-writer.ts';

/** Minimum size of a part, and maximum number of parts per file. */
const S3_PART_BYTES = 8 * MiB;
const MAX_S3_PARTS = 10_000;
const S3_REMOVALS_AT_A_TIME = 8;
/** Age at which an unfinished upload is abandoned. */
const S3_UPLOAD_LIFE_MS = 48 * 60 * 60 * 1000;

interface S3StoreOptions {
  readonly maxFileBytes: number;
  /** Sweeps abort unfinished uploads of this age. Default: 48 hours. */
  readonly uploadLifeMs?: number;
  /** A connection is closed after this time without traffic. */
  readonly stallMs?: number;
}

/**
 * A file can grow by this factor when it is converted: a character that has two bytes in another
 * encoding may have three in UTF-8.
 */
const growth = 1.5;

/**
 * Stores files under the prefix. Loads the SDK and connects on first use. Methods throw
 * `TransientError` if S3 refuses a request or is unavailable.
 */
export function createS3Store(location: S3Location, options: S3StoreOptions): FileStore {
  let opening: Promise<S3Bucket> | undefined;
  const open = (): Promise<S3Bucket> => {
    opening ??= import('./s3-bucket.ts').then(({ S3Bucket }) => new S3Bucket(location, options.stallMs));
    return opening;
  };
  const top = location.prefix === '' ? '' : `${location.prefix}/`;
  const keyOf = (ref: FileRef): string => `${top}${checkRef(ref)}`;
  const partBytes = Math.max(S3_PART_BYTES, Math.ceil((options.maxFileBytes * growth) / MAX_S3_PARTS));
  const uploadLifeMs = options.uploadLifeMs ?? S3_UPLOAD_LIFE_MS;
  const createAs = async (ref: FileRef) => new S3Writer(await open(), { ref, key: keyOf(ref), partBytes });
  return {
    location: `s3://${[location.bucket, location.prefix].filter(Boolean).join('/')}`,
    create: (folder) => createAs(createRef(folder)),
    createAs,
    size: async (ref) => (await open()).size(keyOf(ref)),
    readRange: async (ref, start, end) => readExactly(await open(), keyOf(ref), start, end),
    open: (ref, range) => openStream(open, keyOf(ref), range),
    async *list(kind) {
      for await (const { key, bytes } of (await open()).objects(`${top}${kind}/`)) {
        const ref = key.slice(top.length);
        if (isRef(ref)) yield { ref, bytes };
      }
    },
    remove: async (ref) => (await open()).remove(keyOf(ref)),
    removeFolder: async (folder) => removeBelow(await open(), `${top}${checkFolder(folder)}/`),
    check: async () => (await open()).check(top),
    // S3 reports when an upload began, but not whether it is still written to. Therefore, only old
    // uploads are aborted.
    sweepTemporary: async (olderThanMs) =>
      abortUploads(await open(), top, Date.now() - Math.max(olderThanMs, uploadLifeMs)),
    ...(location.presign
      ? { presign: async (ref, link) => (await open()).presign(keyOf(ref), link) }
      : undefined),
  };
}

function openStream(
  open: () => Promise<S3Bucket>,
  key: string,
  range?: { readonly start: number; readonly end: number },
): Readable {
  async function* read(): AsyncGenerator<Buffer> {
    yield* readObject(await open(), key, range?.start ?? 0, range?.end ?? null);
  }
  return streamOf(read());
}

/**
 * Aborts uploads first, then removes objects. If an upload completes in the meantime, its file is
 * among the objects.
 */
async function removeBelow(bucket: S3Bucket, prefix: string): Promise<void> {
  await abortUploads(bucket, prefix, Number.POSITIVE_INFINITY);
  await eachOf(bucket.objects(prefix), ({ key }) => bucket.remove(key));
}

async function abortUploads(bucket: S3Bucket, prefix: string, before: number): Promise<number> {
  let aborted = 0;
  await eachOf(bucket.uploads(prefix), async ({ key, uploadId, begunAt }) => {
    if (begunAt.getTime() > before) return;
    await bucket.abortUpload(key, uploadId);
    aborted++;
  });
  return aborted;
}

/**
 * Runs `work` for each item, with one request per item. DeleteObjects would need fewer requests,
 * but some servers lack it, and some require checksums for it that others refuse.
 */
async function eachOf<T>(items: AsyncIterable<T>, work: (item: T) => Promise<void>): Promise<void> {
  let batch: T[] = [];
  for await (const item of items) {
    if (batch.push(item) < S3_REMOVALS_AT_A_TIME) continue;
    await Promise.all(batch.map(work));
    batch = [];
  }
  await Promise.all(batch.map(work));
}

const pauseMs = growing(200);

/**
 * Reads an object. If a response breaks off or stalls, requests only the missing bytes. `retry`
 * would start again. If `end` is `null`, reads to the end of the object.
 */
async function* readObject(
  bucket: S3Bucket,
  key: string,
  start: number,
  end: number | null,
): AsyncGenerator<Buffer> {
  let at = start;
  let last = end;
  let failures = 0;
  while (last === null || at < last) {
    const stop = new AbortController();
    const { body, bytes } = await bucket.open(key, at, last, stop.signal);
    last ??= at + bytes;
    try {
      for await (const chunk of body as AsyncIterable<Buffer>) {
        at += chunk.length;
        failures = 0;
        yield chunk;
      }
      if (at < last) throw new Error(`${last - at} bytes are missing`);
    } catch (error) {
      if (++failures >= S3_ATTEMPTS) throw brokenOff(error);
      await wait(pauseMs(failures));
    } finally {
      discard(body, stop);
    }
  }
}

async function readExactly(bucket: S3Bucket, key: string, start: number, end: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafeSlow(end - start);
  let filled = 0;
  for await (const chunk of readObject(bucket, key, start, end)) filled += chunk.copy(bytes, filled);
  return bytes;
}

/** A connection with unread bytes cannot be reused. */
function discard(body: OpenObject['body'], stop: AbortController): void {
  if (body.readableEnded) return;
  body.on('error', () => undefined);
  body.destroy();
  stop.abort();
}

function brokenOff(cause: unknown): Error {
  const reason = messageOf(cause);
  return new TransientError(`S3 storage, reading a file: the answer broke off again and again: ${reason}`, {
    cause,
  });
}
