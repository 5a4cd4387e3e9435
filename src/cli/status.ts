import { hostname } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { readStatus, type ServiceStatus } from '../background-jobs/jobs.ts';
import type { Config } from '../config.ts';
import { WORKER_ALIVE_SECONDS } from '../domain/limits.ts';
import { renderNeed } from '../domain/need.ts';
import { formatBytes, formatCount, formatDuration, plural } from '../domain/wording.ts';
import { type Disk, foldersWritten, isFull, readDisk } from '../files/disk.ts';
import { createWatchPool } from '../postgres/pool.ts';
import { isMissingTable } from '../postgres/sqlstate.ts';
import type { Unfinished } from '../postgres/stores/health.ts';
import type { LaneOverview } from '../postgres/stores/lanes.ts';
import { readLiveWorkers } from '../postgres/stores/workers.ts';
import { defineCommand, flag } from './define-command.ts';
import { CommandFailed } from './errors.ts';
import { listenForStop } from './service/stop-signals.ts';
import { findDatabase } from './session.ts';
import { readSettings } from './settings.ts';
import type { Terminal } from './terminal.ts';
import { type Columns, printable, renderTable } from './terminal.ts';

const everyMs = 2_000;

export const status = defineCommand({
  name: 'status',
  summary: 'workers, queue, lanes, rates, latest failures',
  description:
    'Shows the state of all environments: live workers, what needs attention, what runs in each lane and how fast, what waits and for how long,\n' +
    'exports, deletions, latest failures. Starts and changes nothing.',
  options: {
    watch: flag('--watch', 'again every two seconds, until Ctrl-C'),
    worker: flag('--worker', 'only whether a worker of this host lives, as the exit code: for health checks'),
  },
  json: 'print JSON, with --watch one object a line',
  examples: ['sluice status --watch', 'sluice status --json | jq .oldest_waiting_seconds'],
  run: async ({ cli, command, flags, terminal, json }) => {
    const { config } = readSettings(cli, command);
    const stop = listenForStop();
    const pool = createWatchPool(await findWithDisks(config), 'status');
    pool.on('error', () => undefined);
    try {
      if (flags.worker) return await expectWorker(pool);
      await show(terminal, pool, config, json);
      while (flags.watch && !terminal.closed) {
        await delay(everyMs, undefined, { signal: stop.signal }).catch(() => undefined);
        if (stop.signal.aborted) return;
        if (!json) terminal.print('');
        await show(terminal, pool, config, json);
      }
    } finally {
      await pool.end();
    }
  },
});

/** A worker listens nowhere; the database knows when it was last seen. */
async function expectWorker(pool: pg.Pool): Promise<void> {
  const host = hostname();
  if ((await readLiveWorkers(pool)).some((worker) => worker.host === host)) return;
  throw new CommandFailed(`No worker of ${host} was seen in the last ${WORKER_ALIVE_SECONDS} seconds.`);
}

async function show(terminal: Terminal, pool: pg.Pool, config: Config, json: boolean): Promise<void> {
  const disks = await readDisks(config);
  const found = await readStatus(pool, config.schedulesFile).catch((error: unknown) => {
    if (!isMissingTable(error)) throw asFullDisk(disks, error);
    throw new CommandFailed(
      'The database lacks tables that this version needs: `sluice migrate`, or a start, makes them.',
    );
  });
  if (json) return terminal.json(renderStatus(found, disks));
  for (const line of describeStatus(found, disks)) terminal.print(line);
}

async function findWithDisks(config: Config): Promise<string> {
  return findDatabase(config).catch(async (error: unknown) => {
    throw error instanceof CommandFailed ? asFullDisk(await readDisks(config), error) : error;
  });
}

/** Reads the disks that this machine writes to, each once. One that cannot be read is left out; doctor reports it. */
async function readDisks(config: Config): Promise<Disk[]> {
  const looks = await Promise.allSettled(foldersWritten(config).map(readDisk));
  const found = looks.flatMap((look) => (look.status === 'fulfilled' ? [look.value] : []));
  return [...new Map(found.reverse().map((disk) => [disk.device, disk])).values()].reverse();
}

/** A database without disk space is down and gives no reason. */
function asFullDisk<E>(disks: readonly Disk[], error: E): E | CommandFailed {
  const full = disks.find(isFull);
  if (full === undefined) return error;
  return new CommandFailed(
    `The database is away, and the disk is ${describeDisk(full)}. Make room: the service continues by itself.`,
  );
}

type Need = { readonly environment: string; readonly says: string };

const needColumns: Columns<Need> = {
  'needs a person': ({ says }) => says,
  environment: ({ environment }) => environment,
};
const laneColumns: Columns<LaneOverview> = {
  environment: ({ environment }) => environment,
  runs: ({ running }) => running?.type ?? 'nothing',
  job: ({ running }) => running?.jobId ?? '',
  '>done': ({ running }) => (running ? `${formatCount(running.done)} of ${formatCount(running.total)}` : ''),
  '>rows/s': ({ running }) => (running === null ? '' : running.rowsPerSecond),
  '>for': ({ running }) => (running === null ? '' : formatDuration(running.runningSeconds)),
  '>waiting': ({ waiting }) => waiting,
  '>oldest': ({ oldestWaitingSeconds: oldest }) => (oldest === null ? '' : formatDuration(oldest)),
};
const exportColumns: Columns<ServiceStatus['exports'][number]> = {
  environment: ({ environment }) => environment,
  export: ({ jobId }) => jobId,
  '>rows': ({ rows }) => rows,
  '>bytes': ({ bytes }) => formatBytes(bytes),
  '>for': ({ runningSeconds }) => formatDuration(runningSeconds),
};
const retryColumns: Columns<ServiceStatus['retries'][number]> = {
  'tried again': ({ jobId }) => jobId,
  environment: ({ environment }) => environment,
  'last error': ({ type, lastError }) => printable(`${type}: ${lastError}`, 120),
};
const failureColumns: Columns<ServiceStatus['failures'][number]> = {
  failed: ({ endedAt }) => endedAt,
  environment: ({ environment }) => environment,
  'job or schedule': ({ jobId, schedule }) => jobId ?? schedule ?? '',
  why: ({ type, message, code }) => printable(`${type}: ${message} [${code}]`, 120),
};

/** Returns the lines that a person reads. */
export function describeStatus(status: ServiceStatus, disks: readonly Disk[]): string[] {
  const { workers, backlog: b, lanes, exports, retries, retention, failures, needs } = status;
  const hosts = [...new Set(workers.map(({ host }) => printable(host, 60)))];
  return [
    `workers    ${workers.length === 0 ? 'none is alive' : `${workers.length} alive, on ${hosts.join(', ')}`}`,
    `loads      ${counts(b.loads)}; chunks: ${formatCount(b.runningChunks)} under way, ${formatCount(b.pendingChunks)} to do`,
    `exports    ${counts(b.exports)}`,
    `deletions  ${counts(b.deletions)}`,
    `schedules  ${counts({ ...b.runs, processing: b.runs.processing + b.waitingRuns })}`,
    ...disks.map((disk) => `disk       ${describeDisk(disk)}`),
    ...eventsLine(retention),
    ...section(
      needColumns,
      needs.flatMap(({ environment, needs: some }) => some.map(({ says }) => ({ environment, says }))),
    ),
    ...section(laneColumns, lanes),
    ...section(exportColumns, exports),
    ...section(retryColumns, retries),
    ...section(failureColumns, failures),
  ];
}

function describeDisk(disk: Disk): string {
  const left = `${formatBytes(disk.freeBytes)} free of ${formatBytes(disk.allBytes)}`;
  return `${isFull(disk) ? 'full: ' : ''}${left} at ${disk.folder}`;
}

/** Returns no line if nothing has outlived its retention yet. */
function eventsLine(retention: ServiceStatus['retention']): string[] {
  const { eventsRemoved, eventsArchived, archiveFiles, archiveBytes, error } = retention;
  if (eventsRemoved === 0 && error === null) return [];
  const archived =
    archiveFiles === 0
      ? ''
      : `, ${formatCount(eventsArchived)} in ${plural(archiveFiles, 'archive')} of ${formatBytes(archiveBytes)}`;
  const failing = error === null ? '' : `; pruning fails: ${printable(error, 120)}`;
  return [`events     ${formatCount(eventsRemoved)} removed by their retention${archived}${failing}`];
}

function counts({ processing, queued, oldestSeconds }: Unfinished): string {
  const oldest = queued === 0 ? '' : `, the oldest for ${formatDuration(oldestSeconds)}`;
  return `${formatCount(processing)} running, ${formatCount(queued)} waiting${oldest}`;
}

function section<T>(columns: Columns<T>, items: readonly T[]): string[] {
  return items.length === 0 ? [] : ['', ...renderTable(columns, items)];
}

/** Returns what scripts read; times are ISO 8601, spans in seconds. */
export function renderStatus(
  { workers, backlog, lanes, exports, retries, retention, failures, needs }: ServiceStatus,
  disks: readonly Disk[],
) {
  const { loads, exports: ofExports, deletions, runs } = backlog;
  return {
    workers: workers.map(({ host, pid, startedAt }) => ({ host, pid, started_at: startedAt.toISOString() })),
    loads: { queued: loads.queued, processing: loads.processing },
    chunks: { pending: backlog.pendingChunks, running: backlog.runningChunks },
    exports: { queued: ofExports.queued, processing: ofExports.processing },
    deletions: { queued: deletions.queued, processing: deletions.processing },
    schedule_runs: { queued: runs.queued, running: runs.processing, waiting: backlog.waitingRuns },
    oldest_waiting_seconds: Math.max(
      ...[loads, ofExports, deletions].map(({ oldestSeconds }) => oldestSeconds),
    ),
    rows_per_second: lanes.reduce((sum, { running }) => sum + (running?.rowsPerSecond ?? 0), 0),
    lanes: lanes.map(({ environment, running, waiting, oldestWaitingSeconds }) => ({
      environment,
      running: running && {
        job_id: running.jobId,
        type: running.type,
        done: running.done,
        total: running.total,
        rows_per_second: running.rowsPerSecond,
        running_seconds: running.runningSeconds,
      },
      waiting,
      oldest_waiting_seconds: oldestWaitingSeconds,
    })),
    running_exports: exports.map(({ environment, jobId, rows, bytes, runningSeconds }) => ({
      environment,
      job_id: jobId,
      rows,
      bytes,
      running_seconds: runningSeconds,
    })),
    retries: retries.map(({ environment, jobId, type, lastError }) => ({
      environment,
      job_id: jobId,
      type,
      last_error: lastError,
    })),
    disks: disks.map(({ folder, freeBytes, allBytes }) => ({
      folder,
      free_bytes: freeBytes,
      total_bytes: allBytes,
    })),
    event_retention: {
      events_removed: retention.eventsRemoved,
      months_dropped: retention.monthsDropped,
      events_archived: retention.eventsArchived,
      archive_files: retention.archiveFiles,
      archive_bytes: retention.archiveBytes,
      pruned_at: retention.prunedAt?.toISOString() ?? null,
      error: retention.error,
    },
    needs: needs.flatMap(({ environment, needs: some }) =>
      some.map((need) => ({ environment, ...renderNeed(need) })),
    ),
    failures: failures.map(({ environment, jobId, schedule, type, endedAt, code, message }) => ({
      environment,
      job_id: jobId,
      schedule,
      type,
      end_time: endedAt.toISOString(),
      error_code: code,
      message,
    })),
  };
}
