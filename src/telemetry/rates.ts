import type { Logger } from 'pino';
import { RATES_FLUSH_MS } from '../domain/limits.ts';
import type { Database } from '../postgres/database.ts';
import { addRates, type Counted } from '../postgres/stores/overview.ts';

/**
 * Counts what comes in by the minute, for a plot: in plain numbers, which one small statement for all environments adds to the
 * table every few seconds; a process that has counted nothing sends none. What a process that is killed had counted since is missing in
 * the plot, and nowhere else: the ledger has counts of its own.
 */
export class Rates {
  readonly #db: Database;
  readonly #log: Logger;
  #counted = new Map<number, Record<Counted, number>>();
  #timer: NodeJS.Timeout | undefined;

  constructor({ db, log }: { readonly db: Database; readonly log: Logger }) {
    this.#db = db;
    this.#log = log;
  }

  add(environmentId: number, what: Counted, count: number): void {
    if (count === 0) return;
    const known = this.#counted.get(environmentId);
    if (known !== undefined) {
      known[what] += count;
      return;
    }
    this.#counted.set(environmentId, { records: 0, refused: 0, rows: 0, [what]: count });
    this.#timer ??= setTimeout(() => void this.flush(), RATES_FLUSH_MS).unref();
  }

  /** Adds what has been counted. Never throws: what cannot be added is missing in the plot. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const counted = this.#counted;
    this.#counted = new Map();
    if (counted.size === 0) return;
    try {
      await addRates(this.#db, counted);
    } catch (error) {
      this.#log.debug({ err: error }, 'rates of the last seconds are missing');
    }
  }

  async close(): Promise<void> {
    await this.flush();
  }
}
