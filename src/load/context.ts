import type pg from 'pg';
import type { Sandboxes } from '../base/sandbox/sandboxes.ts';
import type { OptionTable } from '../domain/option-table.ts';
import type { FileStore } from '../files/file-store.ts';
import { EventPartitions } from '../ingest/event-store.ts';
import type { JudgeContext } from '../ingest/records.ts';
import type { KnownProperties } from '../lookups/known-properties.ts';
import type { Acts } from '../postgres/acts.ts';
import type { RefusalSeam } from '../postgres/uses.ts';
import type { JobEvents } from '../tasks/job-seam.ts';
import type { OwnTasks } from '../tasks/runner.ts';
import type { TaskContext } from '../tasks/task-kind.ts';
import type { Rates } from '../telemetry/metrics.ts';
import { Rows } from './map/rows.ts';
import type { RewriteSeam } from './receive/received-file.ts';
import type { LoadSeam, RecordSeam, SecretSeam } from './seam.ts';

/**
 * Services and settings for loads. They are passed as an argument and never imported, so two
 * systems can run in one process.
 */
export interface LoadContext extends TaskContext, JudgeContext {
  readonly pool: pg.Pool;
  readonly acts: Acts;
  readonly jobs: JobEvents;
  readonly files: FileStore;
  readonly refusals: readonly RefusalSeam[];
  readonly loads: readonly LoadSeam[];
  readonly optionTable: OptionTable;
  readonly rewriter: RewriteSeam | null;
  readonly records: RecordSeam | null;
  readonly secrets: readonly SecretSeam[];
  readonly knownProperties: KnownProperties;
  /** Start of links that are not created in response to a request. It has no trailing slash. */
  readonly baseUrl: string;
  readonly memory: ChunkMemory;
  readonly rates: Rates;
  /** Sandboxes that parse untrusted bytes. `null` if this process parses them. */
  readonly sandboxes: Sandboxes | null;
  /** Runs small loads in this process. `null` if workers run them. */
  readonly ownTasks: OwnTasks | null;
}

const maxLoads = 16;
const maxCompanies = 100_000;
const maxIdleRows = 4;

/**
 * Hints about the fastest way to write the next chunk. A hint can be wrong, for example after a
 * crash of the database server has undone chunks. A wrong hint costs only time.
 */
export interface LoadMemory {
  /** `new` while no chunk has contained an existing user. */
  users: 'unknown' | 'new' | 'known';
  /** `known` if the last chunk contained events that already exist. */
  events: 'unknown' | 'new' | 'known';
  /** Number of following chunks that are read without a search for unchanged records. */
  unsearchedChunks: number;
  /**
   * Number of chunks that are read without a search for unchanged records, after a search has found
   * too few of them. 0 if the last search found enough. If the next search also finds too few, this
   * number doubles, up to a maximum.
   */
  nextUnsearched: number;
}

/**
 * Companies that one attempt of a load has created on one database connection. They are kept as
 * they appear in the COPY text, so that chunks compare them without decoding.
 */
class MadeCompanies {
  readonly attempt: string;
  readonly #companies = new Set<string>();

  constructor(attempt: string) {
    this.attempt = attempt;
  }

  missing(companies: readonly string[]): readonly string[] {
    return companies.filter((company) => !this.#companies.has(company));
  }

  /** Remembers that these companies exist. Must be called after the commit that created them. */
  note(companies: readonly string[]): void {
    if (this.#companies.size + companies.length > maxCompanies) return;
    for (const company of companies) this.#companies.add(company);
  }
}

/** Hints and reusable buffers. Losing them costs only time. */
export class ChunkMemory {
  readonly #loads = new Map<number, LoadMemory>();
  readonly #idleRows: Rows[] = [];
  readonly #companies = new WeakMap<pg.PoolClient, MadeCompanies>();
  readonly eventPartitions = new EventPartitions();

  of(loadId: number): LoadMemory {
    const memory: LoadMemory = this.#loads.get(loadId) ?? {
      users: 'unknown',
      events: 'unknown',
      unsearchedChunks: 0,
      nextUnsearched: 0,
    };
    // The first load of the Map is the least recently used one, because each use inserts it again.
    this.#loads.delete(loadId);
    this.#loads.set(loadId, memory);
    const [oldest] = this.#loads.keys();
    if (this.#loads.size > maxLoads && oldest !== undefined) this.#loads.delete(oldest);
    return memory;
  }

  /**
   * Returns the companies that the attempt has created on this connection. These companies still
   * exist, because no company is removed while a load runs, and a crash that loses commits also
   * ends the connection. Companies may be removed before the next attempt, so each attempt starts
   * without any.
   */
  companiesOf(client: pg.PoolClient, load: { loadId: number; attempts: number }): MadeCompanies {
    const attempt = `${load.loadId}:${load.attempts}`;
    const current = this.#companies.get(client);
    if (current?.attempt === attempt) return current;
    const companies = new MadeCompanies(attempt);
    this.#companies.set(client, companies);
    return companies;
  }

  /** Lends buffers of several megabytes, which would be costly to allocate for each chunk. */
  async withRows<T>(work: (rows: Rows) => Promise<T>): Promise<T> {
    const rows = this.#idleRows.pop() ?? new Rows();
    try {
      return await work(rows);
    } finally {
      rows.release();
      if (this.#idleRows.length < maxIdleRows) this.#idleRows.push(rows);
    }
  }
}
