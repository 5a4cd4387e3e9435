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

/** Everything the load route works with. Passed, never imported: two systems can live in one process. */
export interface LoadContext extends TaskContext, JudgeContext {
  readonly pool: pg.Pool;
  /** Calls the hooks of capabilities when a job ends. */
  readonly jobs: JobEvents;
  readonly files: FileStore;
  /** The hooks of capabilities. */
  readonly refusals: readonly RefusalSeam[];
  readonly loads: readonly LoadSeam[];
  /** The options that loads may have. */
  readonly optionTable: OptionTable;
  readonly rewriter: RewriteSeam | null;
  readonly records: RecordSeam | null;
  readonly secrets: readonly SecretSeam[];
  readonly knownProperties: KnownProperties;
  /** The beginning of links outside of requests, without a slash at the end. */
  readonly baseUrl: string;
  readonly memory: ChunkMemory;
  readonly rates: Rates;
  /** The sandboxes that parse bytes from outside; with `null` this process does. */
  readonly sandboxes: Sandboxes | null;
  /** Does small loads in this process; null: they are left to the workers. */
  readonly ownTasks: OwnTasks | null;
}

const maxLoads = 16;
const maxIdleRows = 4;

/**
 * Holds what a process has learned of a load while doing its chunks. Nothing here may be relied on: a server that crashes
 * takes chunks back that were committed.
 */
export interface LoadMemory {
  /** `new` while all users of the load have been new. */
  users: 'unknown' | 'new' | 'known';
  /** `known` if the last chunk brought events that existed. */
  events: 'unknown' | 'new' | 'known';
  /** Chunks that are still to be read without asking which records are unchanged, and how many it will be next time. */
  chunksNotAsked: number;
  nextNotAsked: number;
}

/** A process's knowledge of its loads, and buffers to use again. Losing it costs time only. */
export class ChunkMemory {
  readonly #loads = new Map<number, LoadMemory>();
  readonly #idleRows: Rows[] = [];
  readonly eventPartitions = new EventPartitions();

  of(loadId: number): LoadMemory {
    const known: LoadMemory = this.#loads.get(loadId) ?? {
      users: 'unknown',
      events: 'unknown',
      chunksNotAsked: 0,
      nextNotAsked: 0,
    };
    // Last in, last out: a Map keeps the order of insertion.
    this.#loads.delete(loadId);
    this.#loads.set(loadId, known);
    const [oldest] = this.#loads.keys();
    if (this.#loads.size > maxLoads && oldest !== undefined) this.#loads.delete(oldest);
    return known;
  }

  /** Lends buffers of several megabytes, so that each chunk need not make its own. */
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
