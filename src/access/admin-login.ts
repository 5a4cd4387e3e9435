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

/** Counts by key in windows of time. Of too many keys, the one that began its window first is forgotten. */
export class Windows {
  readonly #byKey = new Map<string, { count: number; readonly endsAt: number }>();
  readonly #windowMs: number;
  readonly #maxKeys: number;
  readonly #now: () => number;

  constructor(windowMs: number, maxKeys: number, now: () => number = () => performance.now()) {
    this.#windowMs = windowMs;
    this.#maxKeys = maxKeys;
    this.#now = now;
  }

  /** Adds to the count of the current window, and returns it with what is left of the window. */
  add(key: string, count = 1): { readonly count: number; readonly leftMs: number } {
    const now = this.#now();
    const known = this.#byKey.get(key);
    if (known !== undefined && known.endsAt > now) {
      known.count += count;
      return { count: known.count, leftMs: known.endsAt - now };
    }
    this.#byKey.delete(key);
    for (const oldest of this.#byKey.keys()) {
      if (this.#byKey.size < this.#maxKeys) break;
      this.#byKey.delete(oldest);
    }
    this.#byKey.set(key, { count, endsAt: now + this.#windowMs });
    return { count, leftMs: this.#windowMs };
  }
}

/** Logins that may fail in a minute from one address. */
const mostFailures = 10;

export class FailedLogins {
  readonly #windows: Windows;

  constructor(now?: () => number) {
    this.#windows = new Windows(60_000, 100_000, now);
  }

  /** Seconds that the address has to wait; 0: it may try. */
  wait(address: string): number {
    const { count, leftMs } = this.#windows.add(networkOf(address), 0);
    return count < mostFailures ? 0 : Math.ceil(leftMs / 1_000);
  }

  failed(address: string): void {
    this.#windows.add(networkOf(address));
  }
}

const networkParts = 4;

/** An IPv4 address, or the /64 of an IPv6 one; what is no address stands for itself. */
function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  return parsed instanceof ipaddr.IPv6 ? parsed.parts.slice(0, networkParts).join(':') : parsed.toString();
}
