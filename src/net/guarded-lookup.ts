import { type LookupAddress, lookup as lookUpHost } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';

/** The host leads to an address inside: this machine, its network, or what a cloud tells its machines. */
export class ForbiddenAddressError extends Error {
  override readonly name = 'ForbiddenAddressError';
  readonly code = 'EADDRFORBIDDEN';

  constructor(host: string) {
    super(`${host} is not a public address`);
  }
}

/** Of IPv6 everything that is routed between networks lies here; what only leads to IPv4 does not. */
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3');

/** Whether an address is one of the public Internet. An IPv4 address written as IPv6 is judged as what it is. */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  if (parsed.range() !== 'unicast') return false;
  return parsed.kind() === 'ipv4' || (parsed as ipaddr.IPv6).match(globalUnicast);
}

/**
 * The `lookup` of a connection that must lead outside: it gives public addresses only, and those are what is connected
 * to, whatever the name leads to a moment later. An address in the place of the name is not looked up by Node: check
 * it with `requirePublicHost`.
 */
export const guardedLookup: LookupFunction = (host, options, done) => {
  const family = options.family === 'IPv4' ? 4 : options.family === 'IPv6' ? 6 : (options.family ?? 0);
  lookUpHost(host, { family, hints: options.hints ?? 0, all: true }, (error, found: LookupAddress[]) => {
    if (error !== null) return done(error, [], 0);
    const allowed = found.filter(({ address }) => isPublicAddress(address));
    const [first] = allowed;
    if (first === undefined) return done(new ForbiddenAddressError(host), [], 0);
    if (options.all === true) return done(null, allowed);
    done(null, first.address, first.family);
  });
};

/** Throws `ForbiddenAddressError` if the host of a URL is an address, and not a public one. Names pass. */
export function requirePublicHost(hostname: string): void {
  const bare = hostname.replace(/^\[|\]$/g, '');
  if (isIP(bare) !== 0 && !isPublicAddress(bare)) throw new ForbiddenAddressError(bare);
}
