const most = 10;
const windowMs = 60_000;
/** Addresses that are remembered; beyond it all are forgotten. */
const maxAddresses = 10_000;

/** Counts logins that failed, by address: whoever guesses must wait. */
export class FailedLogins {
  readonly #byAddress = new Map<string, { count: number; readonly until: number }>();
  readonly #now: () => number;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Seconds that the address has to wait; 0: it may try. */
  wait(address: string): number {
    const found = this.#byAddress.get(address);
    if (found === undefined || found.count < most) return 0;
    const leftMs = found.until - this.#now();
    if (leftMs > 0) return Math.ceil(leftMs / 1_000);
    this.#byAddress.delete(address);
    return 0;
  }

  note(address: string): void {
    const found = this.#byAddress.get(address);
    if (found !== undefined && found.until > this.#now()) {
      found.count++;
      return;
    }
    if (this.#byAddress.size >= maxAddresses) this.#byAddress.clear();
    this.#byAddress.set(address, { count: 1, until: this.#now() + windowMs });
  }
}
