import type { Logger } from 'pino';
import type { Config } from './base/config.ts';
import type { Sandboxes } from './base/sandbox/sandboxes.ts';
import type { QueueCounts } from './domain/task.ts';
import type { ConnectionMonitor } from './postgres/connection-monitor.ts';
import type { Reader } from './postgres/pool.ts';
import type { QueueBackend } from './queue/backend.ts';
import type { Tend } from './tasks/job-seam.ts';
import type { Health } from './telemetry/health/ready.ts';
import type { Metrics } from './telemetry/metrics.ts';
import type { FigureSeam, Preflight } from './telemetry/seam.ts';

/**
 * A running system, on which HTTP, the CLI and the workers are built. Folders that work on a system
 * declare here (`declare module`) what they add to it, so that this file imports none of them.
 */
export interface System {
  readonly config: Config;
  readonly databaseUrl: string;
  readonly monitor: ConnectionMonitor;
  readonly backend: QueueBackend;
  /** The prunings of capabilities. */
  readonly tends: readonly Tend[];
  /** Loads the figures of capabilities. */
  readonly figures: () => Promise<readonly FigureSeam[]>;
  readonly preflights: readonly Preflight[];
  /**
   * For what callers of the API only look at: on connections of its own, so that nobody's record or upload waits for it, and
   * its statements end after READ_TIMEOUT_MS. Without such connections it is on those of `pool`.
   */
  readonly reader: Reader;
  readonly health: Health;
  readonly metrics: Metrics;
  /** Returns the queue's counts, for people only. @throws whatever the queue does. */
  readonly queueCounts: () => Promise<readonly QueueCounts[]>;
  /** Closes everything in the reverse order of opening. */
  close(): Promise<void>;
}

export interface SystemOptions {
  readonly config: Config;
  readonly databaseUrl: string;
  readonly log: Logger;
  /** Shown in pg_stat_activity and in logs. */
  readonly role: string;
  readonly poolSize: number;
  /** Connections of `reader`, besides those of `poolSize`; by default none. */
  readonly readPoolSize?: number;
  /** It merges the small loads that it accepts itself. */
  readonly mergesSmallLoads?: boolean;
  /** By default none; closed with the system. */
  readonly sandboxes?: Sandboxes | null;
}
