import { mkdir, mkdtemp, readdir, readFile, rm, stat, utimes } from 'node:fs/promises';
import type { Server } from 'node:http';
import { createRequire } from 'node:module';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { waitFor } from '../wait-for.ts';

/** A real S3 server (s3rver) in this process, with one bucket. */
export interface TestS3 {
  /** Value of STORAGE_URL. */
  readonly url: string;
  readonly endpoint: string;
  readonly folder: string;
  /** STORAGE_URL and the AWS variables that it requires. */
  readonly variables: Readonly<Record<string, string>>;
  /** Stores an object that was last changed at `at` (to the second). */
  put(key: string, content: string | Uint8Array, at: string): Promise<void>;
  objects(): Promise<string[]>;
  /** Keys of all unfinished uploads. */
  uploads(): Promise<string[]>;
  /** All requests in order, such as `PUT /bucket/key?partNumber=1&…`. */
  readonly requests: readonly string[];
  /** Makes the next request that matches `matches` fail. */
  breakNext(matches: RegExp, how: Breakage): void;
  /** Cancels all failures set up by `breakNext`. */
  mend(): void;
  stop(): Promise<void>;
}

/**
 * How a request fails. `before`: the connection is lost before the server serves the request.
 * `after`: it is lost before the server responds. `half-way`: it is lost in the middle of the
 * response. `stalled`: the response stops half-way, but the connection stays open. `denied`: the
 * server refuses the request.
 */
type Breakage = 'before' | 'after' | 'half-way' | 'stalled' | 'denied';

const key = 'S3RVER';
const bucket = 'files';
const objectSuffix = '._S3rver_object';
const uploadsFolder = '._S3rver_uploads';

/** The parts of s3rver that are used here. s3rver has no types. */
interface S3rver {
  readonly store: Record<
    'putObject' | 'putPart' | 'getObject' | 'listObjects',
    (...args: never[]) => Promise<unknown>
  >;
  readonly middleware: ((context: Context, next: () => Promise<void>) => Promise<void>)[];
  readonly httpServer: Server;
  run(): Promise<AddressInfo>;
}

interface Context {
  readonly method: string;
  readonly path: string;
  readonly originalUrl: string;
  readonly query: Readonly<Record<string, string | undefined>>;
  readonly req: NodeJS.ReadableStream & { readonly socket: { destroy(): void } };
  readonly res: { write: (chunk: Buffer) => boolean };
  status: number;
  type: string;
  body: unknown;
}

type S3rverConstructor = new (options: Readonly<Record<string, unknown>>) => S3rver;

/** Starts the server. It runs until `stop` is called. */
export async function startS3(): Promise<TestS3> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-s3-'));
  await mkdir(join(folder, bucket));
  const load = createRequire(import.meta.url);
  const server = new (load('s3rver') as S3rverConstructor)({
    address: '127.0.0.1',
    port: 0,
    silent: true,
    directory: folder,
    vhostBuckets: false,
  });
  const requests: string[] = [];
  const breaks: Break[] = [];
  completeWrites(server, folder);
  readSingleBytes(server);
  listInPages(server);
  server.middleware.unshift(
    async (context, next) => {
      requests.push(`${context.method} ${context.originalUrl}`);
      await next();
    },
    (context, next) => breakOff(context, next, breaks),
    (context, next) => serveUploads(context, next, folder),
  );
  const { port } = await server.run();
  const endpoint = `http://127.0.0.1:${port}`;
  const url = `s3://${bucket}/some/prefix?endpoint=${endpoint}&path_style=true`;
  return {
    url,
    endpoint,
    folder,
    variables: { STORAGE_URL: url, AWS_ACCESS_KEY_ID: key, AWS_SECRET_ACCESS_KEY: key },
    requests,
    async put(name, content, at) {
      const credentials = { accessKeyId: key, secretAccessKey: key };
      const client = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true, credentials });
      await client.send(new PutObjectCommand({ Bucket: bucket, Key: name, Body: content }));
      client.destroy();
      await utimes(join(folder, bucket, `${name}${objectSuffix}`), new Date(at), new Date(at));
    },
    objects: () => listObjects(join(folder, bucket)),
    uploads: async () => (await listUploads(join(folder, bucket))).map((upload) => upload.key),
    breakNext: (matches, how) => void breaks.push({ matches, how }),
    mend: () => void breaks.splice(0),
    async stop() {
      server.httpServer.close();
      server.httpServer.closeAllConnections();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

export async function deadEndpoint(): Promise<string> {
  const s3 = await startS3();
  await s3.stop();
  const { hostname, port } = new URL(s3.endpoint);
  await waitFor('nobody to listen', () => refuses(hostname, Number(port)));
  return s3.endpoint;
}

function refuses(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, host, () => {
      socket.destroy();
      resolve(false);
    });
    socket.on('error', () => resolve(true));
  });
}

/**
 * Delays the response until all bytes of a file or part are on disk. s3rver would respond earlier.
 */
function completeWrites({ store }: S3rver, folder: string): void {
  const { putObject, putPart } = store as unknown as {
    putObject(object: { readonly bucket: string; readonly key: string }): Promise<{ readonly size: number }>;
    putPart(...args: readonly [string, string, string, unknown]): Promise<{ readonly size: number }>;
  };
  const arrived = (file: string, size: number) =>
    waitFor(`${size} bytes of ${file}`, async () => (await stat(file)).size === size, { everyMs: 1 });
  Object.assign(store, {
    putObject: async (object: { readonly bucket: string; readonly key: string }) => {
      const stored = await putObject.call(store, object);
      await arrived(join(folder, object.bucket, `${object.key}${objectSuffix}`), stored.size);
      return stored;
    },
    putPart: async (...args: [string, string, string, unknown]) => {
      const stored = await putPart.apply(store, args);
      const [bucket, uploadId, part] = args;
      await arrived(join(folder, bucket, uploadsFolder, uploadId, part), stored.size);
      return stored;
    },
  });
}

/**
 * Corrects the range `bytes=0-0`, for which s3rver returns the whole file because the end 0 is
 * falsy.
 */
function readSingleBytes({ store }: S3rver): void {
  const getObject = store.getObject as (...args: unknown[]) => Promise<unknown>;
  Object.assign(store, {
    getObject: (bucket: string, name: string, range?: { readonly end?: number }) =>
      getObject.call(store, bucket, name, range?.end === 0 ? { ...range, end: Object(0) } : range),
  });
}

/** Maximum number of objects on a page of a list. Small, so that tests need several pages. */
const pageKeys = 10;

/**
 * Lists objects in pages. s3rver's page tokens need a cipher that OpenSSL lacks, so clients
 * continue with `start-after` instead.
 */
function listInPages(server: S3rver): void {
  const { store } = server;
  const listObjects = store.listObjects as (
    bucket: string,
    options: { readonly maxKeys: number },
  ) => Promise<object>;
  Object.assign(store, {
    listObjects: async (bucket: string, options: { readonly maxKeys: number }) => {
      const maxKeys = Math.min(options.maxKeys, pageKeys);
      return { ...(await listObjects.call(store, bucket, { ...options, maxKeys })), isTruncated: false };
    },
  });
  server.middleware.unshift(async (context, next) => {
    await next();
    if (context.query['list-type'] !== '2' || typeof context.body !== 'string') return;
    if (context.body.split('<Contents>').length <= pageKeys) return;
    context.body = context.body.replace('<IsTruncated>false', '<IsTruncated>true');
  });
}

interface Break {
  readonly matches: RegExp;
  readonly how: Breakage;
}

async function breakOff(context: Context, next: () => Promise<void>, breaks: Break[]): Promise<void> {
  const index = breaks.findIndex(({ matches }) => matches.test(`${context.method} ${context.originalUrl}`));
  const [breakage] = index < 0 ? [] : breaks.splice(index, 1);
  const lose = () => context.req.socket.destroy();
  if (breakage?.how === 'before') return lose();
  if (breakage?.how === 'denied') return refuse(context, 403, 'AccessDenied');
  if (breakage?.how === 'half-way') cutAnswer(context, lose);
  if (breakage?.how === 'stalled') cutAnswer(context, () => undefined);
  await next();
  if (breakage?.how === 'after') lose();
}

/** Sends half of the first chunk of the response, and then nothing more. */
function cutAnswer({ res }: Context, then: () => void): void {
  const write = res.write.bind(res);
  res.write = (chunk) => {
    res.write = () => false;
    write(chunk.subarray(0, chunk.length / 2));
    setImmediate(then);
    return false;
  };
}

/**
 * Serves the operations that s3rver lacks: AbortMultipartUpload, ListMultipartUploads and the error
 * NoSuchUpload.
 */
async function serveUploads(context: Context, next: () => Promise<void>, folder: string): Promise<void> {
  const { method, path, query } = context;
  const [bucket = ''] = path.slice(1).split('/');
  if (method === 'DELETE' && query['uploadId'] !== undefined) {
    const upload = join(folder, bucket, uploadsFolder, query['uploadId']);
    if (!(await exists(upload))) return refuse(context, 404, 'NoSuchUpload');
    await rm(upload, { recursive: true, force: true });
    context.status = 204;
    return;
  }
  if (query['uploadId'] !== undefined) {
    const upload = join(folder, bucket, uploadsFolder, query['uploadId'], 'key');
    return (await exists(upload)) ? next() : refuse(context, 404, 'NoSuchUpload');
  }
  if (method !== 'GET' || !('uploads' in query)) return next();
  const uploads = await listUploads(join(folder, bucket));
  const entries = uploads
    .filter((upload) => upload.key.startsWith(query['prefix'] ?? ''))
    .map(
      (upload) =>
        `<Upload><Key>${upload.key}</Key><UploadId>${upload.uploadId}</UploadId><Initiated>${upload.begunAt.toISOString()}</Initiated></Upload>`,
    );
  context.type = 'application/xml';
  context.body = `<ListMultipartUploadsResult>${entries.join('')}<IsTruncated>false</IsTruncated></ListMultipartUploadsResult>`;
}

function refuse(context: Context, status: number, code: string): void {
  context.status = status;
  context.type = 'application/xml';
  context.body = `<Error><Code>${code}</Code><Message>${code}</Message></Error>`;
}

async function exists(file: string): Promise<boolean> {
  return stat(file).then(
    () => true,
    () => false,
  );
}

async function listObjects(folder: string): Promise<string[]> {
  const names = await readdir(folder, { recursive: true }).catch(() => []);
  return names
    .filter((name) => name.endsWith(objectSuffix))
    .map((name) => name.slice(0, -objectSuffix.length))
    .sort();
}

async function listUploads(folder: string) {
  const ids = await readdir(join(folder, uploadsFolder)).catch(() => []);
  const uploads = ids.map(async (uploadId) => {
    const file = join(folder, uploadsFolder, uploadId, 'key');
    // Skips uploads that end during this listing, and aborted uploads to which a part was written
    // late.
    const [name, facts] = await Promise.all([readFile(file, 'utf8'), stat(file)]).catch(() => []);
    return name === undefined || facts === undefined ? [] : [{ key: name, uploadId, begunAt: facts.mtime }];
  });
  return (await Promise.all(uploads)).flat();
}
