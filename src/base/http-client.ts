import { type LookupAddress, lookup as lookUpHost } from 'node:dns';
import type { Agent } from 'node:http';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';

/** The addresses that may be connected to; those of private networks and of this machine are `private`. Link-local ones never may. */
export type Reach = 'public' | 'private' | 'any';

/**
 * The one HTTP client, for servers that a user or the operator names. It connects
 * to allowed addresses only (`guardedLookup`), through no proxy, over a connection of its own that is closed with
 * the answer; it follows no redirect and unpacks nothing. The caller bounds what it reads of the body, and for how long.
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
  /** The headers in lower case; of a repeated one the first. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: AsyncIterable<Buffer>;
  /** To be called always, whether or not the body was read. */
  close(): Promise<void>;
}

/** Throws an error with the code `forbiddenAddress`, a `TimeoutError` as signals have, the signal's reason, or what the network says. */
export async function sendRequest(url: URL, options: HttpRequest): Promise<HttpAnswer> {
  requireAllowedHost(url.hostname, options.reach);
  // Loaded when it is needed: most commands need it never, and it takes its time.
  // By its default export: bundled, a CommonJS package has no other.
  const { Agent, request } = (await import('undici')).default;
  const agent = new Agent({
    connect: {
      lookup: guardedLookup(options.reach),
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

/** `Retry-After` as milliseconds from `now`: seconds, or a date. Null if there is none, or it is neither. */
export function readRetryAfter(header: string | undefined, now: number): number | null {
  if (header === undefined) return null;
  if (/^\d{1,9}$/.test(header.trim())) return Number(header) * 1000;
  // `Date.parse` reads much else besides as some date.
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

/** The code of errors about a host that leads to this machine, its network, or the metadata service of a cloud. */
export const forbiddenAddress = 'EADDRFORBIDDEN';

function addressError(host: string, reach: Reach): NodeJS.ErrnoException {
  const wanted = reach === 'private' ? 'an address of a private network' : 'a public address';
  return Object.assign(new Error(`${host} is not ${wanted}`), { code: forbiddenAddress });
}

const ownRanges: ReadonlySet<string> = new Set(['private', 'loopback', 'uniqueLocal', 'carrierGradeNat']);

/** All IPv6 addresses that are routed between networks, without those that only lead to IPv4. */
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3');

/** Tells whether an address may be connected to. An IPv4 address written as IPv6 is judged as IPv4. */
export function isAllowed(address: string, reach: Reach): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  const range = parsed.range();
  if (ownRanges.has(range)) return reach !== 'public';
  if (reach === 'private') return false;
  return range === 'unicast' && (parsed.kind() === 'ipv4' || (parsed as ipaddr.IPv6).match(globalUnicast));
}

/**
 * The `lookup` of a connection that must lead outside: it gives allowed addresses only, and those are what is connected
 * to, whatever the name leads to a moment later. An address in the place of the name is not looked up by Node: check
 * it with `requireAllowedHost`.
 */
export function guardedLookup(reach: Reach): LookupFunction {
  return (host, options, done) => {
    const family = options.family === 'IPv4' ? 4 : options.family === 'IPv6' ? 6 : (options.family ?? 0);
    const asked = { family, hints: options.hints ?? 0, all: true } as const;
    lookUpHost(host, asked, (error, found: LookupAddress[]) => {
      if (error !== null) return done(error, [], 0);
      const allowed = found.filter(({ address }) => isAllowed(address, reach));
      const [first] = allowed;
      if (first === undefined) return done(addressError(host, reach), [], 0);
      if (options.all === true) return done(null, allowed);
      done(null, first.address, first.family);
    });
  };
}

/** Throws an error with the code `forbiddenAddress` if the host of a URL is an address, and not an allowed one. Names pass. */
export function requireAllowedHost(hostname: string, reach: Reach): void {
  const bare = hostname.replace(/^\[|\]$/g, '');
  if (isIP(bare) !== 0 && !isAllowed(bare, reach)) throw addressError(bare, reach);
}

/**
 * For the libraries that use Node's HTTP client, the SDK of S3 and the exporter of spans: gives every connection of the agent a listener of its errors. Node's client leaves one without: if a server answers before it
 * has read the body and then resets the connection, the write that fails counts as the end of the request, and the client
 * takes its listener away before the error is emitted (`requestOnFinish`, Node 20 to 24). An error event without a listener
 * ends the process. The request itself has failed or been answered by then, so nothing is lost with the error.
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
