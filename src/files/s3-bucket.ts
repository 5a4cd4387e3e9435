import { createHash } from 'node:crypto';
import { Agent } from 'node:http';
import { Agent as TlsAgent } from 'node:https';
import type { LookupFunction } from 'node:net';
import type { Readable } from 'node:stream';
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  type GetObjectCommandOutput,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { Fault, messageOf, TransientError } from '../base/errors.ts';
import { guardAgent } from '../base/http-client.ts';
import { S3_ATTEMPTS } from '../base/limits.ts';
import { nextOf, walkPages } from '../base/pages.ts';
import type { S3Location } from '../base/storage-url.ts';
import { MissingFileError, type PresignedLink } from './file-store.ts';

const S3_CONNECT_MS = 5_000;
const S3_STALL_MS = 20_000;
const S3_CHECK_MS = 5_000;
/**
 * Maximum number of connections per process. A download occupies a connection even if its client is
 * slow.
 */
const MAX_S3_CONNECTIONS = 500;
const MAX_PRESIGNED_SECONDS = 7 * 24 * 60 * 60;

export interface OpenObject {
  readonly body: Readable;
  readonly bytes: number;
}

interface BegunUpload {
  readonly key: string;
  readonly uploadId: string;
  readonly begunAt: Date;
}

/** Error codes of servers that cannot list uploads. */
const notOffered: ReadonlySet<string> = new Set(['NotImplemented', 'MethodNotAllowed', 'XNotImplemented']);

/**
 * Sends requests to one bucket. Import this module only when it is needed, because it loads the
 * SDK. Methods throw the errors of `s3Error`. The class is not named `Bucket`, because the compiler
 * (7.0.2) renames properties with the name of their class.
 */
export class S3Bucket {
  readonly #location: S3Location;
  readonly #client: S3Client;

  /** A connection without traffic for `stallMs` is closed. */
  constructor(location: S3Location, stallMs = S3_STALL_MS) {
    this.#location = location;
    this.#client = openClient(location, stallMs);
  }

  async put(key: string, bytes: Buffer): Promise<void> {
    const input = { ...this.#at(key), Body: bytes, ContentLength: bytes.length, ContentMD5: md5(bytes) };
    await this.#try('storing a file', this.#client.send(new PutObjectCommand(input)));
  }

  /** Begins an upload and returns its id. The file is invisible until `completeUpload`. */
  async beginUpload(key: string): Promise<string> {
    const request = this.#client.send(new CreateMultipartUploadCommand(this.#at(key)));
    const { UploadId } = await this.#try('beginning a file', request);
    if (UploadId === undefined) throw new Fault('S3 began an upload without an id');
    return UploadId;
  }

  /** Uploads a part. Parts are numbered from 1. Returns the tag for `completeUpload`. */
  async putPart(
    key: string,
    uploadId: string,
    part: number,
    bytes: Buffer,
    signal: AbortSignal,
  ): Promise<string> {
    const input = {
      ...this.#at(key),
      UploadId: uploadId,
      PartNumber: part,
      Body: bytes,
      ContentLength: bytes.length,
      ContentMD5: md5(bytes),
    };
    const request = this.#client.send(new UploadPartCommand(input), { abortSignal: signal });
    const { ETag } = await this.#try('writing a file', request);
    if (ETag === undefined) throw new Fault('S3 took a part without giving it a tag');
    return ETag;
  }

  /**
   * Joins the parts of an upload and makes the file visible.
   * @throws MissingFileError if the upload was aborted, or completed by a request whose response
   * was lost.
   */
  async completeUpload(key: string, uploadId: string, tags: readonly string[]): Promise<void> {
    const Parts = tags.map((ETag, index) => ({ ETag, PartNumber: index + 1 }));
    const input = { ...this.#at(key), UploadId: uploadId, MultipartUpload: { Parts } };
    await this.#try('completing a file', this.#client.send(new CompleteMultipartUploadCommand(input)));
  }

  /** Aborts an upload. A missing upload is not an error. */
  async abortUpload(key: string, uploadId: string): Promise<void> {
    const input = { ...this.#at(key), UploadId: uploadId };
    try {
      await this.#try('discarding a file', this.#client.send(new AbortMultipartUploadCommand(input)));
    } catch (error) {
      if (!(error instanceof MissingFileError)) throw error;
    }
  }

  /**
   * Opens an object for reading from `start` to `end`. If `end` is `null`, reads to the end of the
   * object.
   * @throws Fault if S3 returns a different range
   */
  async open(key: string, start: number, end: number | null, signal: AbortSignal): Promise<OpenObject> {
    const range = end === null ? {} : { Range: `bytes=${start}-${end - 1}` };
    const input = { ...this.#at(key), ...range };
    try {
      const answer = await this.#client.send(new GetObjectCommand(input), { abortSignal: signal });
      return checkAnswer(answer, start, end);
    } catch (error) {
      if (nameOf(error) === 'InvalidRange') throw new Fault(`the stored file ends before byte ${start + 1}`);
      throw s3Error('reading a file', this.#location, error);
    }
  }

  async size(key: string): Promise<number | null> {
    try {
      const request = this.#client.send(new HeadObjectCommand(this.#at(key)));
      return (await this.#try('looking for a file', request)).ContentLength ?? null;
    } catch (error) {
      if (error instanceof MissingFileError) return null;
      throw error;
    }
  }

  /** Removes an object. S3 reports no error if the object is missing. */
  async remove(key: string): Promise<void> {
    await this.#try('removing a file', this.#client.send(new DeleteObjectCommand(this.#at(key))));
  }

  /** Yields the objects whose keys begin with `prefix`. The caller may remove objects meanwhile. */
  async *objects(prefix: string): AsyncGenerator<{ readonly key: string; readonly bytes: number }> {
    const read = async (last: string | null) => {
      const after = last === null ? {} : { StartAfter: last };
      const input = { Bucket: this.#location.bucket, Prefix: prefix, ...after };
      const page = await this.#try('listing files', this.#client.send(new ListObjectsV2Command(input)));
      const { Contents: objects = [] } = page;
      return { objects, next: nextOf(objects, page.IsTruncated === true, ({ Key }) => Key ?? null) };
    };
    for await (const { objects } of walkPages(null, read)) {
      for (const { Key, Size } of objects) if (Key !== undefined) yield { key: Key, bytes: Size ?? 0 };
    }
  }

  /** Yields uploads neither completed nor aborted, or nothing if the server cannot list them. */
  async *uploads(prefix: string): AsyncGenerator<BegunUpload> {
    const input = { Bucket: this.#location.bucket, Prefix: prefix };
    let from = {};
    while (true) {
      const page = await this.#client
        .send(new ListMultipartUploadsCommand({ ...input, ...from }))
        .catch((error: unknown) => {
          if (notOffered.has(nameOf(error))) return null;
          throw s3Error('listing begun files', this.#location, error);
        });
      if (page === null) return;
      for (const { Key, UploadId, Initiated } of page.Uploads ?? []) {
        if (Key === undefined || UploadId === undefined || Initiated === undefined) continue;
        yield { key: Key, uploadId: UploadId, begunAt: Initiated };
      }
      if (page.IsTruncated !== true || page.NextKeyMarker === undefined) return;
      from = { KeyMarker: page.NextKeyMarker, UploadIdMarker: page.NextUploadIdMarker };
    }
  }

  /**
   * Checks the bucket by listing objects, because a refusal to list states its reason. A HEAD
   * request would return only a status.
   */
  async check(prefix: string): Promise<void> {
    const command = new ListObjectsV2Command({ Bucket: this.#location.bucket, Prefix: prefix, MaxKeys: 1 });
    const abortSignal = AbortSignal.timeout(S3_CHECK_MS);
    await this.#try('checking it', this.#client.send(command, { abortSignal }));
  }

  async presign(key: string, { filename, contentType, expireAt }: PresignedLink): Promise<string> {
    const command = new GetObjectCommand({
      ...this.#at(key),
      ResponseContentDisposition: `attachment; filename="${filename}"`,
      ResponseContentType: contentType,
    });
    const seconds = Math.floor((expireAt.getTime() - Date.now()) / 1000);
    const expiresIn = Math.min(Math.max(seconds, 1), MAX_PRESIGNED_SECONDS);
    return this.#try('signing a link', getSignedUrl(this.#client, command, { expiresIn }));
  }

  #at(key: string): { readonly Bucket: string; readonly Key: string } {
    return { Bucket: this.#location.bucket, Key: key };
  }

  async #try<T>(activity: string, answer: Promise<T>): Promise<T> {
    try {
      return await answer;
    } catch (error) {
      throw s3Error(activity, this.#location, error);
    }
  }
}

export function openClient(
  {
    endpoint,
    region,
    pathStyle,
    credentials,
  }: Pick<S3Location, 'endpoint' | 'region' | 'pathStyle' | 'credentials'>,
  stallMs: number,
  lookup?: LookupFunction,
): S3Client {
  const connections = {
    keepAlive: true,
    maxSockets: MAX_S3_CONNECTIONS,
    ...(lookup !== undefined && { lookup }),
  };
  return new S3Client({
    ...(endpoint === null ? {} : { endpoint }),
    ...(region === null ? {} : { region }),
    ...(credentials === null ? {} : { credentials: withToken(credentials) }),
    forcePathStyle: pathStyle,
    maxAttempts: S3_ATTEMPTS,
    // Many servers do not support the trailing checksums that the SDK sends by default. All servers
    // support Content-MD5.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    // With custom agents, the SDK does not wait for the answer to `Expect: 100-continue`.
    expectContinueHeader: false,
    requestHandler: {
      connectionTimeout: S3_CONNECT_MS,
      socketTimeout: stallMs,
      httpAgent: guardAgent(new Agent(connections)),
      httpsAgent: guardAgent(new TlsAgent(connections)),
    },
  });
}

function withToken({ accessKeyId, secretAccessKey, sessionToken }: NonNullable<S3Location['credentials']>) {
  return { accessKeyId, secretAccessKey, ...(sessionToken === null ? {} : { sessionToken }) };
}

function md5(bytes: Buffer): string {
  return createHash('md5').update(bytes).digest('base64');
}

function checkAnswer(answer: GetObjectCommandOutput, start: number, end: number | null): OpenObject {
  const body = answer.Body as Readable | undefined;
  const bytes = answer.ContentLength;
  try {
    if (body === undefined || bytes === undefined) throw new Fault('S3 answered without a body');
    if (end === null) return { body, bytes };
    const range = /^bytes (\d+)-\d+\//.exec(answer.ContentRange ?? '');
    if (range === null || Number(range[1]) !== start || bytes > end - start) {
      throw new Fault(`S3 answered with another range (${answer.ContentRange ?? 'the whole'})`);
    }
    if (bytes < end - start) throw new Fault(`the stored file ends at byte ${start + bytes}, not at ${end}`);
    return { body, bytes };
  } catch (error) {
    body?.destroy();
    throw error;
  }
}

const missing: ReadonlySet<string> = new Set(['NoSuchKey', 'NotFound', 'NoSuchUpload']);
const wrongCredentials: ReadonlySet<string> = new Set([
  'InvalidAccessKeyId',
  'SignatureDoesNotMatch',
  'ExpiredToken',
  'InvalidToken',
  'TokenRefreshRequired',
]);
const wrongRegion: ReadonlySet<string> = new Set([
  'PermanentRedirect',
  'AuthorizationHeaderMalformed',
  'IllegalLocationConstraintException',
]);
const unreachable: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EPIPE',
  'ETIMEDOUT',
  'TimeoutError',
  'AbortError',
]);

/**
 * Explains a failed request to an operator. Every error except a missing file is transient. The
 * SDK's error contains signed data and is dropped.
 */
function s3Error(activity: string, place: S3Location, error: unknown): Error {
  if (error instanceof Fault || error instanceof TransientError || error instanceof MissingFileError)
    return error;
  const name = nameOf(error);
  const cause = new Error(`${name}: ${messageOf(error)}`);
  if (missing.has(name)) return new MissingFileError(`${activity}: the file is gone`, { cause });
  return new TransientError(`S3 storage, ${activity}: ${explain(name, place, error, cause.message)}`, {
    cause,
  });
}

/**
 * Returns the code of a network error. For an error from S3, returns its name, which is S3's code.
 */
function nameOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return nameOf(error.errors[0]);
  const { code, name } = (error ?? {}) as { readonly code?: unknown; readonly name?: unknown };
  if (typeof code === 'string' && unreachable.has(code)) return code;
  return typeof name === 'string' && name !== 'Error' ? name : String(code ?? 'Error');
}

function explain(name: string, { bucket, endpoint }: S3Location, error: unknown, message: string): string {
  const status =
    (error as { $metadata?: { httpStatusCode?: number } } | null)?.$metadata?.httpStatusCode ?? 0;
  const where = endpoint ?? "Amazon's S3";
  if (name === 'NoSuchBucket')
    return `there is no bucket ${bucket} at ${where}; create it, or correct STORAGE_URL`;
  if (name === 'CredentialsProviderError')
    return 'no credentials were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the machine a role';
  if (wrongCredentials.has(name))
    return `the credentials are wrong or have expired (${name}); check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN`;
  if (wrongRegion.has(name) || status === 301)
    return `bucket ${bucket} is in another region (${name}); set region in STORAGE_URL`;
  if (name === 'AccessDenied' || status === 403)
    return `access to bucket ${bucket} is denied; allow what docs/storage.md lists`;
  if (message.includes('Region is missing')) return 'no region is set; add region=… to STORAGE_URL';
  if (unreachable.has(name))
    return `${where} cannot be reached or does not answer (${name}); is it running, and is STORAGE_URL right?`;
  return status === 0 ? message : `${message} (status ${status})`;
}
