import { type LookupAddress, lookup as lookUpHost } from 'node:dns';
import type { Agent } from 'node:http';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';

/** The host resolves to an internal address: this machine, its network, or the metadata service of a cloud. */
export class ForbiddenAddressError extends Error {
  override readonly name = 'ForbiddenAddressError';
  readonly code = 'EADDRFORBIDDEN';

  constructor(host: string) {
    super(`${host} is not a public address`);
  }
}

const ownRanges: ReadonlySet<string> = new Set(['private', 'loopback', 'uniqueLocal', 'carrierGradeNat']);

/** All IPv6 addresses that are routed between networks, without those that only lead to IPv4. */
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3');

/**
 * Tells whether an address may be connected to: one of the public Internet, or of a network of one's own if `allowPrivate`. An
 * IPv4 address written as IPv6 is judged as what it is.
 */
export function isAllowed(address: string, allowPrivate: boolean): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  const range = parsed.range();
  if (allowPrivate && ownRanges.has(range)) return true;
  return range === 'unicast' && (parsed.kind() === 'ipv4' || (parsed as ipaddr.IPv6).match(globalUnicast));
}

/**
 * The `lookup` of a connection that must lead outside: it gives allowed addresses only, and those are what is connected
 * to, whatever the name leads to a moment later. An address in the place of the name is not looked up by Node: check
 * it with `requireAllowedHost`.
 */
export function guardedLookup(allowPrivate: boolean): LookupFunction {
  return (host, options, done) => {
    const family = options.family === 'IPv4' ? 4 : options.family === 'IPv6' ? 6 : (options.family ?? 0);
    const asked = { family, hints: options.hints ?? 0, all: true } as const;
    lookUpHost(host, asked, (error, found: LookupAddress[]) => {
      if (error !== null) return done(error, [], 0);
      const allowed = found.filter(({ address }) => isAllowed(address, allowPrivate));
      const [first] = allowed;
      if (first === undefined) return done(new ForbiddenAddressError(host), [], 0);
      if (options.all === true) return done(null, allowed);
      done(null, first.address, first.family);
    });
  };
}

/** Throws `ForbiddenAddressError` if the host of a URL is an address, and not an allowed one. Names pass. */
export function requireAllowedHost(hostname: string, allowPrivate: boolean): void {
  const bare = hostname.replace(/^\[|\]$/g, '');
  if (isIP(bare) !== 0 && !isAllowed(bare, allowPrivate)) throw new ForbiddenAddressError(bare);
}

/*
 * The agents of Node's HTTP client, for the libraries that use it: the SDK of S3 and the exporter of spans.
 */

/**
 * Gives every connection of the agent a listener of its errors. Node's client leaves one without: if a server answers before it
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
