import { connect, type Socket } from 'node:net';
import { afterAll, afterEach } from 'vitest';
import type { JobDetail } from '../../src/load/api.ts';
import { type HttpServer, startHttpServer } from '../../src/processes/listen.ts';
import { checkAnswer } from './check-answer.ts';
import { openTestSystem, systemOfFile, type TestSystem } from './system.ts';
import { waitFor } from './wait-for.ts';

/** A server of a test system, really listening, and ways to talk to it. Its answers are held to the OpenAPI document. */
export interface TestServer extends HttpServer {
  /** fetch with the key of the environment `default`; `key: null` sends none. */
  fetch(path: string, options?: FetchOptions): Promise<Response>;
  /** fetch, and the answer's body as JSON. */
  json<T>(path: string, options?: FetchOptions): Promise<Answer<T>>;
  /** Sends a file to be loaded, which must be taken; its job once workers have ended it. */
  load(body: FileBody | null, options?: LoadRequest): Promise<JobDetail>;
  /** A load once it has ended. */
  ended(jobId: string, key?: string): Promise<JobDetail>;
  /** A connection on which anything can be sent. */
  connect(): Promise<RawConnection>;
}

export interface FetchOptions extends RequestInit {
  readonly key?: string | null;
  readonly duplex?: 'half';
  /** Sent as JSON, by POST unless `method` says otherwise. */
  readonly json?: unknown;
}

export type FileBody = string | FormData | Uint8Array<ArrayBuffer>;

export interface LoadRequest extends Omit<FetchOptions, 'body'> {
  /** With its `?`. */
  readonly query?: string;
  /** Default: that of CSV, unless the body says it, as a form does. */
  readonly type?: string;
}

export interface Answer<T> {
  readonly status: number;
  readonly headers: Headers;
  readonly body: T;
}

export interface ErrorBody {
  readonly errors: readonly {
    readonly error: string;
    readonly error_code: string;
    readonly message: string;
    readonly details: string;
  }[];
}

/** The status of an answer that is a refusal, and its codes. */
export async function refusalOf(
  server: TestServer,
  path: string,
  options: FetchOptions = {},
): Promise<[status: number, codes: string[]]> {
  const { status, body } = await server.json<ErrorBody>(path, options);
  return [status, body.errors.map(({ error_code }) => error_code)];
}

/** Options of the requests of an administrator whom the console has signed in. The system has this as its `ADMIN_KEY`. */
export async function signIn(server: TestServer, adminKey: string) {
  const origin = { 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' };
  const json = { key: adminKey };
  const signedIn = await server.fetch('/v1/console/sign_in', { json, key: null, headers: origin });
  const cookie = signedIn.headers.get('set-cookie')?.split(';', 1)[0] ?? '';
  return { key: null, headers: { ...origin, cookie } };
}

/** What a list has on all its pages, in their order. `page` gets the cursor, `between` runs after each. */
export async function walkPages<T>(
  page: (cursor: string) => Promise<{
    readonly data: readonly T[];
    readonly metadata: { readonly cursor: { readonly after: string | null } };
  }>,
  between: () => Promise<void> = async () => undefined,
): Promise<T[]> {
  const items: T[] = [];
  for (let cursor = ''; ; ) {
    const { data, metadata } = await page(cursor);
    items.push(...data);
    if (metadata.cursor.after === null) return items;
    cursor = metadata.cursor.after;
    await between();
  }
}

/** Ends with `stop`. */
export async function serve(system: TestSystem): Promise<TestServer> {
  const server = await startHttpServer(system.system);
  const send: TestServer['fetch'] = async (path, { key = system.key, headers, json, ...options } = {}) => {
    const all = new Headers(headers);
    if (json !== undefined) {
      options = { method: 'POST', body: JSON.stringify(json), ...options };
      if (!all.has('content-type')) all.set('content-type', 'application/json');
    }
    if (key !== null && !all.has('authorization')) all.set('authorization', `Token ${key}`);
    const url = new URL(path, server.address);
    const response = await fetch(url, { ...options, headers: all });
    await checkAnswer(options.method ?? 'GET', url.pathname, response);
    return response;
  };
  const json = async <T>(path: string, options?: FetchOptions) => {
    const response = await send(path, options);
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      body: (text === '' ? null : JSON.parse(text)) as T,
    };
  };
  const ended = (jobId: string, key = system.key): Promise<JobDetail> =>
    waitFor(`job ${jobId} to end`, async () => {
      const { body } = await json<JobDetail>(`/v1/background_jobs/${jobId}`, { key });
      return body.end_time !== null && body;
    });
  return {
    ...server,
    fetch: send,
    json,
    async load(body, { query = '', type = 'text/csv', ...options } = {}) {
      const headers: Record<string, string> = typeof body === 'string' ? { 'content-type': type } : {};
      const sent = { method: 'POST', headers, ...(body !== null && { body }), ...options };
      const { body: taken } = await json<{ job_id: string } & Partial<ErrorBody>>(
        `/v1/imports${query}`,
        sent,
      );
      if (taken.errors !== undefined) throw new Error(`not taken: ${JSON.stringify(taken.errors)}`);
      return ended(taken.job_id, options.key ?? system.key);
    },
    ended,
    connect: () => RawConnection.open(new URL(server.address)),
  };
}

/** Opens the system and the server of a test file. Both end with the file. To be called once, at its top. */
export async function openServer(options: Parameters<typeof openTestSystem>[0] = {}) {
  const t = await systemOfFile(options);
  const server = await serve(t);
  afterAll(() => server.stop());
  return { t, server };
}

/** For files whose tests have systems and servers of their own: both end with the test. To be called once, outside of tests. */
export function serversPerTest() {
  const cleanups: (() => unknown)[] = [];
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });
  const listen = async (system: TestSystem): Promise<TestServer> => {
    const server = await serve(system);
    cleanups.push(() => server.stop());
    return server;
  };
  const start = async (options: Parameters<typeof openTestSystem>[0] = {}) => {
    const system = await openTestSystem(options);
    cleanups.push(() => system.close());
    return { system, server: await listen(system) };
  };
  return { start, listen, cleanups };
}

/** A form with the part `file`, options before and after it. */
export function form(
  file: string | Uint8Array<ArrayBuffer>,
  options: {
    readonly filename?: string;
    readonly type?: string;
    readonly before?: Readonly<Record<string, string>>;
    readonly after?: Readonly<Record<string, string>>;
  } = {},
): FormData {
  const data = new FormData();
  for (const [name, value] of Object.entries(options.before ?? {})) data.append(name, value);
  const type = options.type === undefined ? {} : { type: options.type };
  data.append('file', new Blob([file], type), options.filename ?? 'users.csv');
  for (const [name, value] of Object.entries(options.after ?? {})) data.append(name, value);
  return data;
}

/** A TCP connection that keeps what it is sent. */
export class RawConnection {
  readonly socket: Socket;
  /** What came, as latin1. */
  received = '';
  ended = false;
  error: Error | null = null;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (bytes) => {
      this.received += bytes.toString('latin1');
    });
    socket.on('end', () => {
      this.ended = true;
    });
    socket.on('close', () => {
      this.ended = true;
    });
    socket.on('error', (error) => {
      this.error = error;
    });
  }

  static async open({ hostname, port }: URL): Promise<RawConnection> {
    const connection = new RawConnection(connect({ host: hostname, port: Number(port) }));
    await waitFor('a connection', () => connection.socket.readyState === 'open');
    return connection;
  }

  /** Lines are joined with CR LF, and an empty line is added. */
  head(...lines: readonly string[]): void {
    this.socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  }

  /** Resolves when it is handed over to the system, or when the connection is gone. */
  write(bytes: string | Uint8Array): Promise<void> {
    return new Promise((resolve) => {
      this.socket.write(bytes, () => resolve());
    });
  }

  /** Waits for something to have come; fails at once if the connection ends without it. */
  async until(pattern: RegExp): Promise<RegExpExecArray> {
    const found = await waitFor(
      `${pattern} on the connection`,
      () => pattern.exec(this.received) ?? (this.ended && 'ended'),
    );
    if (found !== 'ended') return found;
    throw new Error(`the connection ended without ${pattern}, after ${JSON.stringify(this.received)}`);
  }

  async untilEnded(): Promise<void> {
    await waitFor('the end of the connection', () => this.ended);
  }

  /** As a machine that crashes: no proper end. */
  reset(): void {
    this.socket.resetAndDestroy();
  }
}
