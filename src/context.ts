import type pg from 'pg';
import type { Logger } from 'pino';
import type { Config } from './config.ts';
import type { ExportContext } from './export/context.ts';
import { writeExport } from './export/write/write-export.ts';
import { openFileStore } from './files/storage.ts';
import { type Ingest, openIngest } from './ingest/ingest.ts';
import { Live } from './live/live.ts';
import { RecordTap } from './live/record-tap.ts';
import { ChunkMemory, type LoadContext } from './load/context.ts';
import { ConnectionMonitor } from './postgres/connection-monitor.ts';
import { createDatabase } from './postgres/database.ts';
import { checkDatabase, createPool, createWatchPool } from './postgres/pool.ts';
import { openReader, type Reader, readerOn } from './postgres/reader.ts';
import { readBacklog, readLoadRows } from './postgres/stores/overview.ts';
import { readEventRetention } from './postgres/stores/retention.ts';
import { readSchedules } from './postgres/stores/schedules.ts';
import { KnownProperties } from './properties/known-properties.ts';
import { createQueueBackend, type QueueBackend } from './queue/backend.ts';
import { openDashboard, type QueueDashboard } from './queue/dashboard.ts';
import { createQueueNotifier } from './queue/notify.ts';
import { createHealth, type Health } from './telemetry/health.ts';
import { droppedLines } from './telemetry/logger.ts';
import { Metrics } from './telemetry/metrics.ts';
import { Rates } from './telemetry/rates.ts';

/** One running system: what HTTP, the CLI and the workers are built on. */
export interface System extends LoadContext, ExportContext {
  readonly config: Config;
  readonly databaseUrl: string;
  readonly monitor: ConnectionMonitor;
  readonly backend: QueueBackend;
  readonly ingest: Ingest;
  /**
   * For what callers of the API only look at: on connections of its own, so that nobody's record or upload waits for it, and
   * its statements end after READ_TIMEOUT_MS. Without such connections it is on those of `pool`.
   */
  readonly reader: Reader;
  /** What browsers watch. */
  readonly live: Live;
  /** Shows single records to them. */
  readonly records: RecordTap;
  readonly health: Health;
  readonly metrics: Metrics;
  /** Pages that show the queues, to be served below `path`; close it before the system. */
  openQueueDashboard(path: string): Promise<QueueDashboard>;
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
}

/** Composition root. The database must be migrated (`prepareDatabase`). */
export function openSystem(options: SystemOptions): System {
  const { config, databaseUrl, log } = options;
  const monitor = new ConnectionMonitor({ url: databaseUrl, log });
  const pool = createPool({
    monitor,
    url: databaseUrl,
    max: options.poolSize,
    applicationName: `sluice ${options.role}`,
  });
  pool.on('error', (error) => log.warn({ err: error }, 'idle database connection lost'));
  const backend = createQueueBackend({
    databaseUrl,
    redisUrl: config.redisUrl,
    redisCa: config.redisCa,
    monitor,
  });
  const queue = createQueueNotifier(backend, (error) => log.warn({ err: error }, 'queue error'));
  const db = createDatabase(pool);
  const { role, readPoolSize: connections } = options;
  const readerOptions = connections === undefined ? null : { databaseUrl, log, role, connections };
  const reader =
    readerOptions === null ? readerOn(pool, options.poolSize) : openReader(readerOptions, monitor);
  const knownProperties = new KnownProperties(log);
  const files = openFileStore(config.storage, config.maxInflatedBytes);
  const watch = createWatchPool(databaseUrl, options.role, monitor);
  watch.on('error', (error) => log.debug({ err: error }, 'idle watching connection lost'));
  const metrics = new Metrics(
    {
      backlog: () => readBacklog(watch),
      loadRows: () => readLoadRows(watch),
      schedules: () => readSchedules(watch),
      retention: () => readEventRetention(watch),
    },
    () => droppedLines(log),
  );
  const checks = {
    database: async () => {
      await checkDatabase(watch);
      monitor.assertAnswering();
    },
    queue: backend.ping,
    storage: () => files.check(),
  };
  const records = new RecordTap();
  const rates = new Rates({ db, log });
  const live = new Live({ pool: reader.pool, log, records });
  const ingest = openIngest({ pool, db, knownProperties, metrics });
  return {
    config,
    databaseUrl,
    monitor,
    backend,
    pool,
    db,
    files,
    metrics,
    health: createHealth(checks, log),
    knownProperties,
    ingest,
    reader,
    live,
    records,
    queue,
    writeExport,
    exportTimeoutMs: config.exportTimeoutMinutes * 60_000,
    baseUrl: config.publicUrl ?? `http://${config.host}:${config.port}`,
    log,
    memory: new ChunkMemory(),
    rates,
    ownTasks: null,
    openQueueDashboard: (path) =>
      openDashboard(backend, path, (error) => log.warn({ err: error }, 'queue error')),
    async close() {
      live.stop();
      await ingest.drained();
      await rates.close();
      await queue.close();
      await backend.close();
      await endPool(watch);
      await endPool(reader.pool);
      await endPool(pool);
      monitor.close();
    },
  };
}

async function endPool(pool: pg.Pool): Promise<void> {
  if (!pool.ended) await pool.end();
}
