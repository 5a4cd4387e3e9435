import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { basename } from 'node:path';
import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { CommandFailed } from '../../src/cli/errors.ts';

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

/** Number of times that a request is repeated after `Retry-After`. */
const maxTries = 20;
const maxPauseMs = 10_000;

/** Returns the milliseconds before a request is repeated. `null` if the response is final. */
function readPause(status: number, retryAfter: string | null | undefined, tries: number): number | null {
  if (status !== 503 || !/^\d+$/.test(retryAfter ?? '') || tries >= maxTries) return null;
  return Math.min(Number(retryAfter) * 1_000, maxPauseMs);
}

const boundary = 'sluice-demo-6f1d2c';
/** Number of bytes shown from the beginning of a file. */
const firstBytes = 4_096;

/** Uses the service over HTTP with a key, as any other client does. */
export interface Client {
  upload(path: string, onBytes: (bytes: number) => void): Promise<Job>;
  post(path: string, body: unknown): Promise<Job>;
  job(jobId: string): Promise<Job>;
  rejects(jobId: string): Promise<readonly Rejected[]>;
  /** Returns the first page of the lookup. */
  segments(): Promise<readonly { readonly id: number; readonly title: string }[]>;
  /** Returns the job id. */
  exportJob(request: object): Promise<string>;
  showExport(jobId: string): Promise<ExportJob>;
  /** Returns the beginning of a file from its signed link, which needs no key. */
  text(url: string): Promise<string>;
}

export function createClient(url: string, key: string, signal: AbortSignal): Client {
  const headers = { authorization: `Token ${key}` };
  /** `request` creates the request for each attempt. */
  const call = async <T>(path: string, request: () => RequestInit = () => ({})): Promise<T> => {
    for (let tries = 1; ; tries++) {
      const init = request();
      const response = await fetch(url + path, { ...init, headers: { ...headers, ...init.headers }, signal });
      const body = await response.text();
      if (response.ok) return JSON.parse(body) as T;
      const pauseMs = readPause(response.status, response.headers.get('retry-after'), tries);
      if (pauseMs === null) throw new CommandFailed(`${path} answered ${response.status}: ${body}`);
      await delay(pauseMs, undefined, { signal });
    }
  };
  const post = <T>(path: string, body: unknown): Promise<T> =>
    call(path, () => ({
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }));
  const exports = '/api/v1/analytics/exports';
  return {
    upload: (path, onBytes) =>
      call('/v1/imports', () => ({
        method: 'POST',
        headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
        body: Readable.toWeb(Readable.from(formOf(path, onBytes))) as ReadableStream,
        duplex: 'half',
      })),
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

/** Yields a form with one file as a stream, so that neither side holds the file in memory. */
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
/** Number of requests that a connection sends before it waits for responses. */
const depth = 64;

export interface Posts {
  /** Base URL of the server: `http://host:port`. */
  readonly url: string;
  readonly path: string;
  readonly key: string;
  readonly count: number;
  /** Returns the JSON of request `n`, from 0. */
  readonly body: (n: number) => string;
  /** Called with the number of requests that have been answered. */
  readonly onAnswered: (count: number) => void;
  readonly signal: AbortSignal;
}

/**
 * Sends many small requests, each with one record, and checks that each has status 202. Several
 * requests share a connection (HTTP pipelining), which leaves the processor to the server.
 */
export async function postPipelined(posts: Posts): Promise<void> {
  let next = 0;
  let total = 0;
  const take = (): [first: number, end: number] => {
    const first = next;
    next = Math.min(posts.count, first + depth);
    return [first, next];
  };
  const onBatch = (size: number): void => {
    total += size;
    posts.onAnswered(total);
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
      let waiting = Array.from({ length: end - first }, (_, index) => first + index);
      for (let tries = 1; waiting.length > 0; tries++) {
        socket.write(waiting.map((n) => requestText(posts, n)).join(''));
        const late: number[] = [];
        let pauseMs = 0;
        for (const n of waiting) {
          const pause = await readAnswer(answers, posts.path, tries);
          if (pause !== null) late.push(n);
          pauseMs = Math.max(pauseMs, pause ?? 0);
        }
        onBatch(waiting.length - late.length);
        waiting = late;
        if (late.length > 0) await delay(pauseMs, undefined, { signal: posts.signal });
      }
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

/**
 * Returns `null` for status 202, otherwise the milliseconds before the request is repeated.
 * @throws CommandFailed
 */
async function readAnswer(
  answers: AsyncGenerator<string, void>,
  path: string,
  tries: number,
): Promise<number | null> {
  const answer = await answers.next();
  if (answer.done === true) throw new CommandFailed(`${path}: the server closed the connection.`);
  const status = Number(/^HTTP\/1\.1 (\d+)/.exec(answer.value)?.[1]);
  if (status === 202) return null;
  const pauseMs = readPause(status, /^retry-after: *(\d+)/im.exec(answer.value)?.[1], tries);
  if (pauseMs === null) throw new CommandFailed(`${path} answered ${answer.value}`);
  return pauseMs;
}

/** Yields the heads of the responses, and skips their bodies. */
async function* readAnswers(socket: Socket): AsyncGenerator<string, void> {
  let text = '';
  for await (const bytes of socket as AsyncIterable<Buffer>) {
    text += bytes.toString('latin1');
    let start = 0;
    for (let end = text.indexOf('\r\n\r\n'); end !== -1; end = text.indexOf('\r\n\r\n', start)) {
      const head = text.slice(start, end);
      const next = end + 4 + Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
      if (next > text.length) break;
      yield head;
      start = next;
    }
    text = text.slice(start);
  }
}
