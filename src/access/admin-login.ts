import ipaddr from 'ipaddr.js';
import { digestKey, matchesDigest } from '../postgres/stores/api-keys.ts';

/**
 * Says of Authorization headers whether they are `Bearer <token>`, in a time that does not tell how far they agree.
 * Without a token everybody may.
 */
export function createTokenCheck(token: string | null): (header: string | undefined) => boolean {
  if (token === null) return () => true;
  const digest = digestKey(token);
  return (header) => matchesDigest(/^bearer +(\S+)$/i.exec(header?.trim() ?? '')?.[1] ?? '', digest);
}

const windowMs = 60_000;
/** Logins that may fail in a window from one address, and from all of them. */
const mostOfAddress = 10;
const mostOfAll = 100;
/** The time for which an address is trusted after a login; beyond a number of addresses the oldest is forgotten. */
const trustMs = 24 * 3_600_000;
const maxTrusted = 1_000;
const networkParts = 4;

interface Window {
  count: number;
  readonly until: number;
}

/**
 * Counts logins that failed, by address and in all: whoever guesses must wait, and many who guess together too. An address
 * from which somebody has logged in waits for its own failures only, so that guessing locks out nobody who is known.
 */
export class FailedLogins {
  /** No more than `mostOfAll` in a window: beyond that nobody new is compared. */
  readonly #byAddress = new Map<string, Window>();
  readonly #trustedUntil = new Map<string, number>();
  readonly #now: () => number;
  #all: Window = { count: 0, until: 0 };

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Seconds that the address has to wait; 0: it may try. */
  wait(address: string): number {
    const network = networkOf(address);
    const own = this.#secondsLeft(this.#byAddress.get(network), mostOfAddress);
    const isTrusted = (this.#trustedUntil.get(network) ?? 0) > this.#now();
    return isTrusted ? own : Math.max(own, this.#secondsLeft(this.#all, mostOfAll));
  }

  failed(address: string): void {
    const now = this.#now();
    if (this.#all.until <= now) this.#all = { count: 0, until: now + windowMs };
    this.#all.count++;
    for (const [known, { until }] of this.#byAddress) if (until <= now) this.#byAddress.delete(known);
    const network = networkOf(address);
    const own = this.#byAddress.get(network) ?? { count: 0, until: now + windowMs };
    own.count++;
    this.#byAddress.set(network, own);
  }

  succeeded(address: string): void {
    const network = networkOf(address);
    this.#trustedUntil.delete(network);
    for (const oldest of this.#trustedUntil.keys()) {
      if (this.#trustedUntil.size < maxTrusted) break;
      this.#trustedUntil.delete(oldest);
    }
    this.#trustedUntil.set(network, this.#now() + trustMs);
  }

  #secondsLeft(window: Window | undefined, most: number): number {
    if (window === undefined || window.count < most) return 0;
    return Math.max(0, Math.ceil((window.until - this.#now()) / 1_000));
  }
}

/** An IPv4 address, or the /64 of an IPv6 one; what is no address stands for itself. */
function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  return parsed instanceof ipaddr.IPv6 ? parsed.parts.slice(0, networkParts).join(':') : parsed.toString();
}
