import { guardedLookup, requireAllowedHost } from './guarded-agent.ts';

/**
 * The one HTTP client, for servers that a user or the operator names: sources of schedules, receivers of webhooks. It connects
 * to allowed addresses only (see `guarded-lookup.ts`), through no proxy, over a connection of its own that is closed with
 * the answer; it follows no redirect and unpacks nothing. The caller bounds what it reads of the body, and for how long.
 */
interface HttpRequest {
  readonly method: 'GET' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** True if addresses of private networks and of this machine are allowed; link-local ones never are. */
  readonly allowPrivate: boolean;
  readonly authorities?: string | null;
  readonly connectTimeoutMs: number;
  readonly answerTimeoutMs: number;
  readonly signal: AbortSignal;
}

export interface HttpAnswer {
  readonly status: number;
  /** The headers in lower case; of a repeated one the first. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: AsyncIterable<Buffer>;
  /** To be called always, whether or not the body was read. */
  close(): Promise<void>;
}

export class HttpTimeoutError extends Error {
  override readonly name = 'HttpTimeoutError';
  readonly stage: 'connection' | 'answer';

  constructor(stage: 'connection' | 'answer', timeoutMs: number) {
    super(`no ${stage} within ${timeoutMs} ms`);
    this.stage = stage;
  }
}

/** Throws `ForbiddenAddressError`, `HttpTimeoutError`, the signal's reason, or what the network says. */
export async function sendRequest(url: URL, options: HttpRequest): Promise<HttpAnswer> {
  requireAllowedHost(url.hostname, options.allowPrivate);
  // Loaded when it is needed: most commands need it never, and it takes its time.
  // By its default export: bundled, a CommonJS package has no other.
  const { Agent, request } = (await import('undici')).default;
  const agent = new Agent({
    connect: {
      lookup: guardedLookup(options.allowPrivate),
      timeout: options.connectTimeoutMs,
      ...(typeof options.authorities === 'string' && { ca: options.authorities }),
    },
    headersTimeout: options.answerTimeoutMs,
    // The caller knows how slow a body may be.
    bodyTimeout: 0,
  });
  try {
    const { method, signal } = options;
    const headers = { 'user-agent': 'sluice', ...options.headers };
    const answer = await request(url, {
      method,
      headers,
      body: options.body ?? null,
      signal,
      dispatcher: agent,
      reset: true,
    });
    // A body that is given up ends in an error, after which nobody asks.
    answer.body.on('error', () => undefined);
    return {
      status: answer.statusCode,
      headers: firstOfEach(answer.headers),
      body: answer.body,
      close: () => agent.destroy(),
    };
  } catch (error) {
    await agent.destroy();
    throw options.signal.aborted ? options.signal.reason : translate(error, options);
  }
}

function firstOfEach(headers: Readonly<Record<string, string | string[] | undefined>>) {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value[0] : value]),
  );
}

function translate(error: unknown, { connectTimeoutMs, answerTimeoutMs }: HttpRequest): unknown {
  const { code } = error as { code?: unknown };
  if (code === 'UND_ERR_CONNECT_TIMEOUT') return new HttpTimeoutError('connection', connectTimeoutMs);
  if (code === 'UND_ERR_HEADERS_TIMEOUT') return new HttpTimeoutError('answer', answerTimeoutMs);
  return error;
}
