import { type LookupAddress, lookup as lookUpHost } from 'node:dns';
import type { Agent } from 'node:http';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';

/**
 * Addresses to which a request may connect. `public`: public addresses. `private`: addresses of
 * private networks and of this machine. `any`: all of these. Link-local addresses are never
 * allowed.
 */
export type Reach = 'public' | 'private' | 'any';

/**
 * Every request to a server that a user or operator names goes through `sendRequest`. Each request
 * has its own connection, without a proxy, to an allowed address (`guardedLookup`). `sendRequest`
 * neither follows redirects nor decompresses the body. The caller limits the size and duration of
 * the body.
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
  /** First value of each header, by lower-case name. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: AsyncIterable<Buffer>;
  /** Closes the connection. Must be called even if the body was not read. */
  close(): Promise<void>;
}

/**
 * Sends a request and returns its answer as soon as the headers have arrived.
 * @throws an error with code `forbiddenAddress`, a `TimeoutError`, the signal's reason or a network
 * error
 */
export async function sendRequest(url: URL, options: HttpRequest): Promise<HttpAnswer> {
  requireAllowedHost(url.hostname, options.reach);
  // Most commands need no HTTP, so undici is imported only when a request is sent. undici is
  // CommonJS, so the bundle has only its default export.
  const { Agent, request } = (await import('undici')).default;
  const agent = new Agent({
    connect: {
      lookup: guardedLookup(options.reach),
      timeout: options.connectTimeoutMs,
      ...(typeof options.authorities === 'string' && { ca: options.authorities }),
    },
    headersTimeout: options.answerTimeoutMs,
    // No limit, because the caller limits the time for reading the body.
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
 * Returns the number of milliseconds from `now` that a `Retry-After` header asks for. The header
 * contains seconds or a date. Returns `null` for any other text.
 */
export function readRetryAfter(header: string | undefined, now: number): number | null {
  if (header === undefined) return null;
  if (/^\d{1,9}$/.test(header.trim())) return Number(header) * 1000;
  // The form is checked first, because `Date.parse` accepts many strings that are not HTTP dates.
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

const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3');

/** An IPv4 address in IPv6 notation counts as IPv4. */
export function isAllowed(address: string, reach: Reach): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  const range = parsed.range();
  if (privateRanges.has(range)) return reach !== 'public';
  if (reach === 'private') return false;
  return range === 'unicast' && (parsed.kind() === 'ipv4' || (parsed as ipaddr.IPv6).match(globalUnicast));
}

/**
 * Returns a function for DNS lookups that yields no addresses except allowed ones, so that the
 * connection uses a checked address. Node does not call `lookup` for literal addresses: see
 * `requireAllowedHost`.
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
 * Refuses a literal address to which the request may not connect.
 * @throws an error with code `forbiddenAddress` for a forbidden literal address. Names are not
 * checked.
 */
export function requireAllowedHost(hostname: string, reach: Reach): void {
  const bare = hostname.replace(/^\[|\]$/g, '');
  if (isIP(bare) !== 0 && !isAllowed(bare, reach)) throw addressError(bare, reach);
}

/**
 * Adds an error listener to each connection of a Node HTTP agent. S3's SDK and the span exporter
 * use such agents. If a server resets the connection before it has read the whole body, Node 20 to
 * 24 has already removed its own listener (`requestOnFinish`). Without another listener, the error
 * would end the process, although the request has already failed or been answered.
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
