import { lookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import { SourceFailure } from '../source-failure.ts';

/** What `allow_private` opens: networks of one's own. Not those where nothing but machinery answers (169.254.169.254). */
const ownRanges = new Set(['private', 'loopback', 'uniqueLocal', 'carrierGradeNat']);

/** Whether an address may be connected to. What is neither public nor one's own never may. */
export function isAllowed(address: string, allowPrivate: boolean): boolean {
  if (!ipaddr.isValid(address)) return false;
  // An IPv4 address written as IPv6 is looked at as what it is.
  const range = ipaddr.process(address).range();
  return range === 'unicast' || (allowPrivate && ownRanges.has(range));
}

/** @throws SourceFailure `private_address` for a host that is an address: no name is looked up for it. */
export function checkLiteral(host: string, allowPrivate: boolean): void {
  const address = host.replace(/^\[(.*)\]$/, '$1');
  if (isIP(address) !== 0 && !isAllowed(address, allowPrivate)) throw refused(host);
}

/**
 * Looks names up for a connection, which is then made to an address that was looked at here: a name that has another
 * address a moment later leads nowhere else.
 */
export function guardedLookup(allowPrivate: boolean): LookupFunction {
  return (host, options, done) => {
    lookup(host, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return done(error, '');
      const [first] = addresses;
      if (first === undefined || !addresses.every(({ address }) => isAllowed(address, allowPrivate))) {
        return done(refused(host), '');
      }
      if (options.all === true) return done(null, addresses);
      done(null, first.address, first.family);
    });
  };
}

function refused(host: string): SourceFailure {
  const message = `${host} is an address of a private network, of this machine or of no network; allow_private and SCHEDULES_ALLOW_PRIVATE would both have to allow it`;
  return new SourceFailure('private_address', message);
}
