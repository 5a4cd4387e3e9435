import { type LookupAddress, lookup as lookUpHost } from 'node:dns';
import type { Agent } from 'node:http';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';

/**
 * Allowed addresses. `private`: only private networks and this machine. `any`: private and public
 * addresses. Link-local addresses are never allowed.
 */
export type Reach = 'public' | 'private' | 'any';

/**
 * Every request to a server that a user or operator names is sent by `sendRequest`. It opens one
 * connection per request, without a proxy, and only to allowed addresses (`guardedLookup`). It does
 * not follow redirects or decompress bodies. The caller limits the size and duration of the body.
 */
interface HttpRequest {
  readonly method: 'GET' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly reach: Reach;
  readonly authorities?: string | null;
  readonly connectTimeoutMs: number;
  readonly answerTimeoutMs: number;
  readonly signal: AbortSignal;
}

export interface HttpAnswer {
  readonly status: number;
  /** Headers by lower-case name. If a header is repeated, its first value is used. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: AsyncIterable<Buffer>;
  /** Closes the connection. Callers must call it even if they did not read the body. */
  close(): Promise<void>;
}

/**
 * @throws an error with code `forbiddenAddress`, a `TimeoutError`, the signal's reason or a network
 * error
 */
export async function sendRequest(url: URL, options: HttpRequest): Promise<HttpAnswer> {
  requireAllowedHost(url.hostname, options.reach);
  // Loaded on the first request, because most commands do not need HTTP. undici is a CommonJS
  // package: in the bundle, it has only a default export.
  const { Agent, request } = (await import('undici')).default;
  const agent = new Agent({
    connect: {
      lookup: guardedLookup(options.reach),
      timeout: options.connectTimeoutMs,
      ...(typeof options.authorities === 'string' && { ca: options.authorities }),
    },
    headersTimeout: options.answerTimeoutMs,
    // undici sets no time limit for the body, because the caller of `sendRequest` does.
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
    answer.body.on('error', () => undefined);
    return {
      status: answer.statusCode,
      headers: Object.fromEntries(
        Object.entries(answer.headers).map(([name, value]) => [
          name,
          Array.isArray(value) ? value[0] : value,
        ]),
      ),
      body: answer.body,
      close: () => agent.destroy(),
    };
  } catch (error) {
    await agent.destroy();
    throw options.signal.aborted ? options.signal.reason : translate(error, options);
  }
}

/**
 * Returns the delay that a `Retry-After` header (seconds or a date) specifies, in milliseconds from
 * `now`. `null` for any other value.
 */
export function readRetryAfter(header: string | undefined, now: number): number | null {
  if (header === undefined) return null;
  if (/^\d{1,9}$/.test(header.trim())) return Number(header) * 1000;
  // The pattern is needed because `Date.parse` accepts many strings that are not HTTP dates.
  const at = /^[A-Z][a-z]{2,8},? /.test(header) ? Date.parse(header) : Number.NaN;
  return Number.isNaN(at) ? null : Math.max(0, at - now);
}

function translate(error: unknown, { connectTimeoutMs, answerTimeoutMs }: HttpRequest): unknown {
  const { code } = error as { code?: unknown };
  if (code === 'UND_ERR_CONNECT_TIMEOUT') return timeoutError('connection', connectTimeoutMs);
  if (code === 'UND_ERR_HEADERS_TIMEOUT') return timeoutError('answer', answerTimeoutMs);
  return error;
}

function timeoutError(missing: string, timeoutMs: number): Error {
  return new DOMException(`no ${missing} within ${timeoutMs} ms`, 'TimeoutError');
}

export const forbiddenAddress = 'EADDRFORBIDDEN';

function addressError(host: string, reach: Reach): NodeJS.ErrnoException {
  const requirement = reach === 'private' ? 'an address of a private network' : 'a public address';
  return Object.assign(new Error(`${host} is not ${requirement}`), { code: forbiddenAddress });
}

const privateRanges: ReadonlySet<string> = new Set(['private', 'loopback', 'uniqueLocal', 'carrierGradeNat']);

/** Range of global unicast IPv6 addresses. Addresses outside it are not allowed. */
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3');

/** Returns whether the address is allowed. An IPv4 address in IPv6 notation counts as IPv4. */
export function isAllowed(address: string, reach: Reach): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  const range = parsed.range();
  if (privateRanges.has(range)) return reach !== 'public';
  if (reach === 'private') return false;
  return range === 'unicast' && (parsed.kind() === 'ipv4' || (parsed as ipaddr.IPv6).match(globalUnicast));
}

/**
 * Returns a `lookup` function that returns only allowed addresses. Therefore, the connection uses
 * an address that was checked. Node does not call `lookup` for literal addresses, so check those
 * with `requireAllowedHost`.
 */
export function guardedLookup(reach: Reach): LookupFunction {
  return (host, options, done) => {
    let family = 0;
    if (options.family === 'IPv4') family = 4;
    else if (options.family === 'IPv6') family = 6;
    else if (options.family !== undefined) family = options.family;
    const query = { family, hints: options.hints ?? 0, all: true } as const;
    lookUpHost(host, query, (error, addresses: LookupAddress[]) => {
      if (error !== null) return done(error, [], 0);
      const allowed = addresses.filter(({ address }) => isAllowed(address, reach));
      const [first] = allowed;
      if (first === undefined) return done(addressError(host, reach), [], 0);
      if (options.all === true) return done(null, allowed);
      done(null, first.address, first.family);
    });
  };
}

/**
 * @throws an error with code `forbiddenAddress` if the host is a forbidden literal address. Host
 * names are not checked.
 */
export function requireAllowedHost(hostname: string, reach: Reach): void {
  const bare = hostname.replace(/^\[|\]$/g, '');
  if (isIP(bare) !== 0 && !isAllowed(bare, reach)) throw addressError(bare, reach);
}

/**
 * Adds an error listener to each connection of a Node HTTP agent. S3's SDK and the span exporter
 * use such agents. A server may respond before it has read the whole body, and then reset the
 * connection. Node 20 to 24 removes its own listener before it emits that error
 * (`requestOnFinish`), so the process would exit. The error can be ignored, because the request has
 * already failed or its response has arrived.
 */
export function guardAgent<A extends Agent>(agent: A): A {
  const connect = agent.createConnection;
  agent.createConnection = (options, done) => {
    const socket = connect.call(agent, options, done);
    socket?.on('error', () => undefined);
    return socket;
  };
  return agent;
}
