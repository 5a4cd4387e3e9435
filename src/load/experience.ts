import { Rows } from '../mapping/rows.ts';

/** Loads remembered, and companies remembered of each. */
const maxLoads = 16;
const maxCompanies = 100_000;
const maxIdleRows = 4;

/** What a process has learned of a load while doing chunks of it. */
export interface LoadExperience {
  /** Whether the users of the load have so far been new, all of them. */
  users: 'unknown' | 'new' | 'known';
  /** Companies that exist, since a chunk that named them has been committed. Escaped for COPY. */
  readonly companies: Set<string>;
}

/** What a process learns as it works, and buffers to use again. To lose it costs time only. */
export class Experience {
  readonly #loads = new Map<number, LoadExperience>();
  readonly #idleRows: Rows[] = [];

  of(loadId: number): LoadExperience {
    const known = this.#loads.get(loadId) ?? { users: 'unknown', companies: new Set() };
    // Last in, last out: a Map keeps the order of insertion.
    this.#loads.delete(loadId);
    this.#loads.set(loadId, known);
    const [oldest] = this.#loads.keys();
    if (this.#loads.size > maxLoads && oldest !== undefined) this.#loads.delete(oldest);
    return known;
  }

  /** Adds companies to those known of a load. */
  remember(experience: LoadExperience, companies: Iterable<string>): void {
    if (experience.companies.size > maxCompanies) experience.companies.clear();
    for (const company of companies) experience.companies.add(company);
  }

  /** Lends buffers of several megabytes, so that each chunk need not make its own. */
  async withRows<T>(work: (rows: Rows) => Promise<T>): Promise<T> {
    const rows = this.#idleRows.pop() ?? new Rows();
    try {
      return await work(rows);
    } finally {
      rows.bytes = Buffer.alloc(0);
      if (this.#idleRows.length < maxIdleRows) this.#idleRows.push(rows);
    }
  }
}
