import type pg from 'pg';
import type { Sandboxes } from '../base/sandbox/sandboxes.ts';
import type { OptionTable } from '../domain/option-table.ts';
import type { FileStore } from '../files/file-store.ts';
import { EventPartitions } from '../ingest/event-store.ts';
import type { JudgeContext } from '../ingest/judge-seam.ts';
import type { KnownProperties } from '../lookups/known-properties.ts';
import type { RefusalSeam } from '../postgres/guard.ts';
import type { JobEvents } from '../tasks/job-seam.ts';
import type { OwnTasks } from '../tasks/runner.ts';
import type { TaskContext } from '../tasks/task-kind.ts';
import type { Rates } from '../telemetry/metrics.ts';
import { Rows } from './map/rows.ts';
import type { RewriteSeam } from './receive/seam.ts';
import type { LoadSeam, RecordSeam, SecretSeam } from './seam.ts';

/** What loads work with. Passed, never imported: two systems can live in one process. */
export interface LoadContext extends TaskContext, JudgeContext {
  readonly pool: pg.Pool;
  readonly jobs: JobEvents;
  readonly files: FileStore;
  readonly refusals: readonly RefusalSeam[];
  readonly loads: readonly LoadSeam[];
  readonly optionTable: OptionTable;
  readonly rewriter: RewriteSeam | null;
  readonly records: RecordSeam | null;
  readonly secrets: readonly SecretSeam[];
  readonly knownProperties: KnownProperties;
  /** The beginning of links outside requests, without a final slash. */
  readonly baseUrl: string;
  readonly memory: ChunkMemory;
  readonly rates: Rates;
  /** Parse bytes from outside. With `null` this process does. */
  readonly sandboxes: Sandboxes | null;
  /** Does small loads in this process. With `null` the workers do. */
  readonly ownTasks: OwnTasks | null;
}

const maxLoads = 16;
const maxCompanies = 100_000;
const maxIdleRows = 4;

/** Hints about a load from its chunks. A server that crashes may take committed chunks back. */
export interface LoadMemory {
  /** `new` while all users of the load have been new. */
  users: 'unknown' | 'new' | 'known';
  /** `known` if the last chunk had existing events. */
  events: 'unknown' | 'new' | 'known';
  /** Chunks to read without looking for unchanged records, and how many it will be next. */
  chunksNotAsked: number;
  nextNotAsked: number;
}

/** Companies that the transactions of one attempt at a load have made on one connection. */
class MadeCompanies {
  readonly attempt: string;
  readonly #ids = new Set<string>();

  constructor(attempt: string) {
    this.attempt = attempt;
  }

  missing(ids: readonly string[]): readonly string[] {
    return ids.filter((id) => !this.#ids.has(id));
  }

  /** Call it after the commit. */
  note(ids: readonly string[]): void {
    if (this.#ids.size + ids.length <= maxCompanies) for (const id of ids) this.#ids.add(id);
  }
}

/** What a process knows of its loads, and reusable buffers. Losing it costs only time. */
export class ChunkMemory {
  readonly #loads = new Map<number, LoadMemory>();
  readonly #idleRows: Rows[] = [];
  readonly #companies = new WeakMap<pg.PoolClient, MadeCompanies>();
  readonly eventPartitions = new EventPartitions();

  of(loadId: number): LoadMemory {
    const known: LoadMemory = this.#loads.get(loadId) ?? {
      users: 'unknown',
      events: 'unknown',
      chunksNotAsked: 0,
      nextNotAsked: 0,
    };
    // The least recently used one leaves: a Map keeps the order of insertion.
    this.#loads.delete(loadId);
    this.#loads.set(loadId, known);
    const [oldest] = this.#loads.keys();
    if (this.#loads.size > maxLoads && oldest !== undefined) this.#loads.delete(oldest);
    return known;
  }

  /**
   * The companies that surely exist. A crash that takes commits back also ends the connection.
   * Nothing removes companies while a load runs, but something may before its retry.
   */
  companiesOf(client: pg.PoolClient, load: { loadId: number; attempts: number }): MadeCompanies {
    const attempt = `${load.loadId}:${load.attempts}`;
    const known = this.#companies.get(client);
    if (known?.attempt === attempt) return known;
    const made = new MadeCompanies(attempt);
    this.#companies.set(client, made);
    return made;
  }

  /** Lends buffers of several megabytes, so that chunks need not allocate them. */
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
