import type { Logger } from 'pino';
import type { Config } from './base/config.ts';
import type { Sandboxes } from './base/sandbox/sandboxes.ts';
import type { QueueCounts } from './domain/task.ts';
import type { ConnectionMonitor } from './postgres/connection-monitor.ts';
import type { Reader } from './postgres/pool.ts';
import type { QueueBackend } from './queue/backend.ts';
import type { Maintenance } from './tasks/job-seam.ts';
import type { Health } from './telemetry/health/ready.ts';
import type { Metrics } from './telemetry/metrics.ts';
import type { FigureSeam, Preflight } from './telemetry/seam.ts';

/**
 * A running system, used by HTTP, the CLI and the workers. Other folders add members with `declare
 * module`, so that this file does not import them.
 */
export interface System {
  readonly config: Config;
  readonly databaseUrl: string;
  readonly monitor: ConnectionMonitor;
  readonly backend: QueueBackend;
  /** Functions with which capabilities remove expired data. */
  readonly maintenance: readonly Maintenance[];
  readonly figures: () => Promise<readonly FigureSeam[]>;
  readonly preflights: readonly Preflight[];
  /**
   * Connections for reads by API callers, so that these reads do not delay records or uploads.
   * Statements end after READ_TIMEOUT_MS. If there are no separate connections, uses those of
   * `pool`.
   */
  readonly reader: Reader;
  readonly health: Health;
  readonly metrics: Metrics;
  /**
   * Returns the queue's counts for display.
   * @throws the errors of the queue
   */
  readonly queueCounts: () => Promise<readonly QueueCounts[]>;
  /** Closes everything in the reverse order of opening. */
  close(): Promise<void>;
}

export interface SystemOptions {
  readonly config: Config;
  readonly databaseUrl: string;
  readonly log: Logger;
  /** Name in pg_stat_activity and in logs. */
  readonly role: string;
  readonly poolSize: number;
  /** Connections of `reader`, in addition to `poolSize`. Default: none. */
  readonly readPoolSize?: number;
  readonly mergesSmallLoads?: boolean;
  /** Closed when the system is closed. Default: none. */
  readonly sandboxes?: Sandboxes | null;
}
