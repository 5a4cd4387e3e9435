import { extname } from 'node:path';
import type pg from 'pg';
import type { Logger } from 'pino';
import { chunkJob } from '../../jobs/load.ts';
import { droppedLines } from '../base/logger.ts';
import { Sandboxes } from '../base/sandbox/sandboxes.ts';
import type { System, SystemOptions } from '../context.ts';
import { OptionTable } from '../domain/option-table.ts';
import { kindsInTurn, queueName } from '../domain/task.ts';
import { ExportOptions } from '../export/options.ts';
import { writeExport } from '../export/write/write-export.ts';
import { openFileStore } from '../files/storage.ts';
import { openIngest } from '../ingest/ingest.ts';
import { ChunkMemory } from '../load/context.ts';
import { KnownProperties } from '../lookups/known-properties.ts';
import { Acts } from '../postgres/acts.ts';
import { ConnectionMonitor } from '../postgres/connection-monitor.ts';
import { createDatabase } from '../postgres/database.ts';
import {
  checkDatabase,
  createPool,
  createWatchPool,
  logLostConnections,
  openReader,
  readerOn,
} from '../postgres/pool.ts';
import { createQueueBackend } from '../queue/backend.ts';
import { createQueueNotifier } from '../queue/notify.ts';
import { capabilities } from '../registry.ts';
import { jobEvents } from '../tasks/job-seam.ts';
import { openOwnTasks } from '../tasks/runner.ts';
import { createHealth } from '../telemetry/health/ready.ts';
import { Metrics, Rates } from '../telemetry/metrics.ts';

/**
 * An export that takes longer than this fails, because its snapshot keeps vacuum from removing old
 * row versions everywhere.
 */
const EXPORT_TIMEOUT_MS = 12 * 60 * 60 * 1000;

const figures = () => Promise.all(capabilities.flatMap((each) => each.figures?.() ?? []));

/** The database must already be migrated (`prepareDatabase`). */
export function openSystem(options: SystemOptions): System {
  const { config, databaseUrl, log, sandboxes = null } = options;
  const { monitor, pool, reader, watch } = openPools(options);
  const backend = createQueueBackend({
    databaseUrl,
    redisUrl: config.redisUrl,
    redisCa: config.redisCa,
    monitor,
  });
  const queue = createQueueNotifier(backend, (error) => log.warn({ err: error }, 'queue error'));
  const db = createDatabase(pool);
  const knownProperties = new KnownProperties(log);
  const [records = null] = capabilities.flatMap((each) => each.records ?? []);
  const files = openFileStore(config.storage, config.maxInflatedBytes);
  const { health, metrics } = openHealth({ monitor, backend, files, pool, watch, log });
  const rates = new Rates({ db, log });
  const acts = new Acts(capabilities.flatMap((each) => each.acts?.({ db, log, config }) ?? []));
  const loads = capabilities.flatMap((each) => each.loads ?? []);
  const refusals = capabilities.flatMap((each) => each.refusals ?? []);
  const ingest = openIngest({ pool, db, config, knownProperties, metrics, refusals, records });
  const system: System = {
    config,
    databaseUrl,
    monitor,
    backend,
    pool,
    db,
    files,
    metrics,
    health,
    knownProperties,
    ingest,
    reader,
    queue,
    figures,
    signInWays: capabilities.flatMap(({ signIn }) => signIn ?? []),
    definitionLists: () => Promise.all(capabilities.flatMap((each) => each.definitions?.() ?? [])),
    maintenance: capabilities.flatMap(({ maintain }) => maintain ?? []),
    refusals,
    records,
    secrets: capabilities.flatMap(({ secrets }) => secrets ?? []),
    preflights: capabilities.flatMap(({ preflight }) => preflight ?? []),
    loads,
    optionTable: new OptionTable(loads),
    rewriter: capabilities.find((each) => each.rewriter)?.rewriter ?? null,
    archive: capabilities.find((each) => each.archive)?.archive ?? null,
    deletions: capabilities.flatMap(({ deletions }) => deletions ?? []),
    jobs: jobEvents(capabilities.flatMap(({ jobs }) => jobs ?? [])),
    writeExport,
    exportOptions: new ExportOptions(capabilities.flatMap(({ exports }) => exports ?? [])),
    exportTimeoutMs: EXPORT_TIMEOUT_MS,
    baseUrl: config.publicUrl ?? `http://${config.host}:${config.port}`,
    log,
    memory: new ChunkMemory(),
    rates,
    acts,
    sandboxes,
    ownTasks: null,
    queueCounts: () => queue.counts(),
    async close() {
      sandboxes?.close();
      await ingest.drained();
      await rates.flush();
      await acts.close();
      await queue.close();
      await backend.close();
      await endPool(watch);
      await endPool(reader.pool);
      await endPool(pool);
      monitor.close();
    },
  };
  return options.mergesSmallLoads === true ? withSmallLoads(system) : system;
}

/** Opens pools for work, for requests that only read, and for health and metrics. */
function openPools({ databaseUrl, log, role, poolSize, readPoolSize: connections }: SystemOptions) {
  const monitor = new ConnectionMonitor({ url: databaseUrl, log });
  const pool = createPool({ monitor, url: databaseUrl, max: poolSize, applicationName: `sluice ${role}` });
  logLostConnections(pool, log);
  const reader =
    connections === undefined
      ? readerOn(pool, poolSize)
      : openReader({ databaseUrl, log, role, connections }, monitor);
  const watch = createWatchPool(databaseUrl, role, monitor);
  watch.on('error', (error) => log.debug({ err: error }, 'idle watching connection lost'));
  return { monitor, pool, reader, watch };
}

interface HealthParts extends Pick<System, 'monitor' | 'backend' | 'files' | 'pool' | 'log'> {
  readonly watch: pg.Pool;
}

function openHealth(watched: HealthParts): Pick<System, 'health' | 'metrics'> {
  const { monitor, backend, files, pool, watch, log } = watched;
  const checks = {
    database: async () => {
      await checkDatabase(watch);
      monitor.assertAnswering();
    },
    queue: backend.ping,
    storage: () => files.check(),
  };
  const health = createHealth(checks, log);
  const sources = { watch, health, pool, droppedLogLines: () => droppedLines(log) };
  const metrics = new Metrics(async (counters) =>
    (await import('../telemetry/metrics-page.ts')).createMetricsPage(counters, {
      ...sources,
      figures: await figures(),
    }),
  );
  return { health, metrics };
}

async function endPool(pool: pg.Pool): Promise<void> {
  if (!pool.ended) await pool.end();
}

/**
 * Number of small loads that this process merges at a time, each on a database connection. Workers
 * merge all other loads.
 */
const atATime = 2;
/**
 * Share of the shutdown time in which small loads can end. Loads that need longer are then
 * released.
 */
const stopShare = 0.1;

/** The process that accepts a small load also merges it, if it is the environment's turn. */
function withSmallLoads(system: System): System {
  const ownTasks = openOwnTasks<System>(system, [chunkJob], kindsInTurn(queueName), atATime);
  return {
    ...system,
    ownTasks,
    async close() {
      await ownTasks.stop(system.config.shutdownMs * stopShare);
      await system.close();
    },
  };
}

export function openSandboxes(log: Logger): Sandboxes {
  // The program is `sandbox.ts` in this folder or, in a build, next to the bundle.
  return new Sandboxes(new URL(`./sandbox${extname(import.meta.url)}`, import.meta.url), log);
}
