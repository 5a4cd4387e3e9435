import { connect, type Socket } from 'node:net';
import { afterAll, afterEach } from 'vitest';
import type { JobDetail } from '../../../src/load/api.ts';
import { type HttpServer, startHttpServer } from '../../../src/processes/listen.ts';
import { checkAnswer } from '../oracles/check-answer.ts';
import { waitFor } from '../wait-for.ts';
import { openTestSystem, systemOfFile, type TestSystem } from './system.ts';

/** A server under test. All its functions check each response against the OpenAPI document. */
export interface TestServer extends HttpServer {
  /**
   * Calls fetch with the key of the environment `default`, unless the options have a key. `key:
   * null` sends no key.
   */
  fetch(path: string, options?: FetchOptions): Promise<Response>;
  json<T>(path: string, options?: FetchOptions): Promise<Answer<T>>;
  /** Uploads a file that must be accepted, and waits until its load has ended. Returns the job. */
  load(body: FileBody | null, options?: LoadRequest): Promise<JobDetail>;
  /** Waits until a load has ended. */
  ended(jobId: string, key?: string): Promise<JobDetail>;
  /** Opens a connection over which a test can send arbitrary bytes. */
  connect(): Promise<RawConnection>;
}

export interface FetchOptions extends RequestInit {
  readonly key?: string | null;
  readonly duplex?: 'half';
  /** Body to send as JSON. If present, the default method is POST. */
  readonly json?: unknown;
}

export type FileBody = string | FormData | Uint8Array<ArrayBuffer>;

export interface LoadRequest extends Omit<FetchOptions, 'body'> {
  /** Query string, including its `?`. */
  readonly query?: string;
  /** Media type of a body that is a string. Default: `text/csv`. */
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

/** Returns the status and the error codes of a refused request. */
export async function refusalOf(
  server: TestServer,
  path: string,
  options: FetchOptions = {},
): Promise<[status: number, codes: string[]]> {
  const { status, body } = await server.json<ErrorBody>(path, options);
  return [status, body.errors.map(({ error_code }) => error_code)];
}

/**
 * Signs an administrator in to the console with the `ADMIN_KEY` of the system. Returns the options
 * for later requests.
 */
export async function signIn(server: TestServer, adminKey: string) {
  const origin = { 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' };
  const json = { key: adminKey };
  const signedIn = await server.fetch('/v1/console/sign_in', { json, key: null, headers: origin });
  const cookie = signedIn.headers.get('set-cookie')?.split(';', 1)[0] ?? '';
  return { key: null, headers: { ...origin, cookie } };
}

/**
 * Returns the items of all pages of a list, in order. `page` fetches the page at a cursor, and
 * `between` is called after each page.
 */
export async function walkPages<T>(
  page: (cursor: string) => Promise<{
    readonly data: readonly T[];
    readonly metadata: { readonly cursor: { readonly after: string | null } };
  }>,
  between: () => Promise<void> = async () => undefined,
): Promise<T[]> {
  const items: T[] = [];
  let cursor: string | null = '';
  while (cursor !== null) {
    const { data, metadata } = await page(cursor);
    items.push(...data);
    cursor = metadata.cursor.after;
    if (cursor !== null) await between();
  }
  return items;
}

/** Starts a server. It runs until `stop` is called. */
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
      const { body: accepted } = await json<{ job_id: string } & Partial<ErrorBody>>(
        `/v1/imports${query}`,
        sent,
      );
      if (accepted.errors !== undefined) throw new Error(`not accepted: ${JSON.stringify(accepted.errors)}`);
      return ended(accepted.job_id, options.key ?? system.key);
    },
    ended,
    connect: () => RawConnection.open(new URL(server.address)),
  };
}

/**
 * Opens a system and a server, and closes both after the test file. Call this once, at the top of
 * the file.
 */
export async function openServer(options: Parameters<typeof openTestSystem>[0] = {}) {
  const t = await systemOfFile(options);
  const server = await serve(t);
  afterAll(() => server.stop());
  return { t, server };
}

/**
 * Returns functions that open a system and a server for a single test. Call this once, outside of
 * tests.
 */
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

/**
 * Returns a form with the part `file`. The fields in `before` precede this part, and those in
 * `after` follow it.
 */
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

export class RawConnection {
  readonly socket: Socket;
  /** Decoded as latin1. */
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

  /** Sends the lines, each with CR LF, and then an empty line. */
  head(...lines: readonly string[]): void {
    this.socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  }

  /** Resolves when the operating system has taken the bytes, or when the connection is lost. */
  write(bytes: string | Uint8Array): Promise<void> {
    return new Promise((resolve) => {
      this.socket.write(bytes, () => resolve());
    });
  }

  /**
   * Waits until the received bytes match. Throws immediately if the connection ends before a match.
   */
  async until(pattern: RegExp): Promise<RegExpExecArray> {
    const match = await waitFor(
      `${pattern} on the connection`,
      () => pattern.exec(this.received) ?? (this.ended && 'ended'),
    );
    if (match !== 'ended') return match;
    throw new Error(`the connection ended without ${pattern}, after ${JSON.stringify(this.received)}`);
  }

  async untilEnded(): Promise<void> {
    await waitFor('the end of the connection', () => this.ended);
  }

  /** Resets the connection, as if the client had crashed. */
  reset(): void {
    this.socket.resetAndDestroy();
  }
}
