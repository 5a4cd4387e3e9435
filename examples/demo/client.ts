import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { basename } from 'node:path';
import { Readable } from 'node:stream';
import { CommandFailed } from '../../src/cli/errors.ts';

/** A job as the interface shows it; the part that the demo looks at. */
export interface Job {
  readonly job_id: string;
  readonly status: string;
  readonly total_rows: number | string;
  readonly completed_rows: number;
  readonly rows_per_second: number | null;
  readonly counts: Readonly<
    Record<'read' | 'inserted' | 'updated' | 'unchanged' | 'superseded' | 'rejected', number>
  >;
  readonly failure: { readonly message: string } | null;
}

export interface Rejected {
  readonly row: number;
  readonly line: number;
  readonly column: string | null;
  readonly error_code: string;
  readonly message: string;
}

/** An export as its own interface shows it; the part that the demo looks at. */
export interface ExportJob {
  readonly status: string;
  readonly presigned_urls: readonly {
    readonly filename: string;
    readonly url: string;
    readonly bytes: number;
    readonly rows: number;
    readonly sha256: string;
  }[];
  readonly manifest: Omit<ExportJob['presigned_urls'][number], 'rows'> | null;
  readonly failure: { readonly message: string } | null;
}

const boundary = 'sluice-demo-6f1d2c';
/** Of a file that is shown. */
const firstBytes = 4_096;

/** Talks to the service as anybody else would: over HTTP, with the key. */
export interface Client {
  upload(path: string, onBytes: (bytes: number) => void): Promise<Job>;
  post(path: string, body: unknown): Promise<Job>;
  job(jobId: string): Promise<Job>;
  rejects(jobId: string): Promise<readonly Rejected[]>;
  /** The first page of the lookup. */
  segments(): Promise<readonly { readonly id: number; readonly title: string }[]>;
  /** Asks for an export; its job id. */
  exportJob(request: object): Promise<string>;
  showExport(jobId: string): Promise<ExportJob>;
  /** The beginning of a file, by its signed link: no key is needed. */
  text(url: string): Promise<string>;
}

export function createClient(url: string, key: string, signal: AbortSignal): Client {
  const headers = { authorization: `Token ${key}` };
  const call = async <T>(path: string, init: RequestInit = {}): Promise<T> => {
    const response = await fetch(url + path, { ...init, headers: { ...headers, ...init.headers }, signal });
    const body = await response.text();
    if (!response.ok) throw new CommandFailed(`${path} answered ${response.status}: ${body}`);
    return JSON.parse(body) as T;
  };
  const post = <T>(path: string, body: unknown): Promise<T> =>
    call(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const exports = '/api/v1/analytics/exports';
  return {
    upload: (path, onBytes) =>
      call('/v1/imports', {
        method: 'POST',
        headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
        body: Readable.toWeb(Readable.from(formOf(path, onBytes))) as ReadableStream,
        duplex: 'half',
      }),
    post,
    job: (jobId) => call(`/v1/background_jobs/${jobId}`),
    rejects: async (jobId) =>
      (await call<{ data: readonly Rejected[] }>(`/v1/background_jobs/${jobId}/rejects`)).data,
    segments: async () =>
      (
        await call<{ data: readonly { readonly id: number; readonly title: string }[] }>(
          `${exports}/lookups/segments`,
        )
      ).data,
    exportJob: async (request) => (await post<{ job_id: string }>(exports, request)).job_id,
    showExport: (jobId) => call(`${exports}/jobs/${jobId}`),
    text: async (link) => {
      const response = await fetch(link, { headers: { range: `bytes=0-${firstBytes - 1}` }, signal });
      if (response.status !== 206) throw new CommandFailed(`A link answered ${response.status}.`);
      return response.text();
    },
  };
}

/** A form with one file, streamed: neither side holds it in memory. */
async function* formOf(path: string, onBytes: (bytes: number) => void): AsyncGenerator<Buffer> {
  const disposition = `form-data; name="file"; filename="${basename(path)}"`;
  yield Buffer.from(`--${boundary}\r\ncontent-disposition: ${disposition}\r\ncontent-type: text/csv\r\n\r\n`);
  let total = 0;
  for await (const bytes of createReadStream(path, { highWaterMark: 1 << 18 }) as AsyncIterable<Buffer>) {
    total += bytes.length;
    onBytes(total);
    yield bytes;
  }
  yield Buffer.from(`\r\n--${boundary}--\r\n`);
}

const connections = 4;
/** Requests that a connection sends before it waits for their answers. */
const depth = 64;

export interface Posts {
  /** Of the server: `http://host:port`. */
  readonly url: string;
  readonly path: string;
  readonly key: string;
  readonly count: number;
  /** JSON of request `n`, from 0. */
  readonly body: (n: number) => string;
  /** Told how many are answered. */
  readonly onAnswered: (count: number) => void;
  readonly signal: AbortSignal;
}

/**
 * Sends many small requests, each on its own, and sees that each is answered 202. Several are under way on a connection
 * (HTTP pipelining), so that the sender leaves the processor to the server it shows.
 */
export async function postPipelined(posts: Posts): Promise<void> {
  let next = 0;
  let answered = 0;
  const take = (): [first: number, end: number] => {
    const first = next;
    next = Math.min(posts.count, first + depth);
    return [first, next];
  };
  const onBatch = (size: number): void => {
    answered += size;
    posts.onAnswered(answered);
  };
  await Promise.all(Array.from({ length: connections }, () => postOnConnection(posts, take, onBatch)));
}

async function postOnConnection(
  posts: Posts,
  take: () => [first: number, end: number],
  onBatch: (size: number) => void,
): Promise<void> {
  const { hostname, port } = new URL(posts.url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  try {
    await once(socket, 'connect', { signal: posts.signal });
    const answers = readAnswers(socket);
    for (let [first, end] = take(); first < end; [first, end] = take()) {
      posts.signal.throwIfAborted();
      let requests = '';
      for (let n = first; n < end; n++) requests += requestText(posts, n);
      socket.write(requests);
      for (let n = first; n < end; n++) await expectAccepted(answers, posts.path);
      onBatch(end - first);
    }
  } finally {
    socket.destroy();
  }
}

function requestText({ url, path, key, body }: Posts, n: number): string {
  const text = body(n);
  return (
    `POST ${path} HTTP/1.1\r\nhost: ${new URL(url).host}\r\nauthorization: Token ${key}\r\n` +
    `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
  );
}

async function expectAccepted(answers: AsyncGenerator<string, void>, path: string): Promise<void> {
  const answer = await answers.next();
  if (answer.done === true) throw new CommandFailed(`${path}: the server closed the connection.`);
  if (!answer.value.startsWith('HTTP/1.1 202 ')) throw new CommandFailed(`${path} answered ${answer.value}`);
}

/** The heads of the answers, one by one; an answer of 202 has no body. */
async function* readAnswers(socket: Socket): AsyncGenerator<string, void> {
  let text = '';
  for await (const bytes of socket as AsyncIterable<Buffer>) {
    text += bytes.toString('latin1');
    let start = 0;
    for (let end = text.indexOf('\r\n\r\n'); end !== -1; end = text.indexOf('\r\n\r\n', start)) {
      yield text.slice(start, end);
      start = end + 4;
    }
    text = text.slice(start);
  }
}
