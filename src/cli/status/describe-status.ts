import type { ServiceStatus } from '../../background-jobs/read-status.ts';
import { type Disk, isFull } from '../../files/disk.ts';
import type { LaneOverview } from '../../postgres/ledger/lane-overview.ts';
import { formatBytes, formatCount, formatDuration } from '../format-numbers.ts';
import { type Column, printable, renderTable } from '../table.ts';

const laneColumns: readonly Column[] = [
  { title: 'environment' },
  { title: 'runs' },
  { title: 'job' },
  { title: 'done', align: 'right' },
  { title: 'rows/s', align: 'right' },
  { title: 'for', align: 'right' },
  { title: 'waiting', align: 'right' },
  { title: 'oldest', align: 'right' },
];
const exportColumns: readonly Column[] = [
  { title: 'environment' },
  { title: 'export' },
  { title: 'rows', align: 'right' },
  { title: 'bytes', align: 'right' },
  { title: 'for', align: 'right' },
];
const retryColumns: readonly Column[] = [
  { title: 'tried again' },
  { title: 'environment' },
  { title: 'last error' },
];
const failureColumns: readonly Column[] = [
  { title: 'failed' },
  { title: 'environment' },
  { title: 'job or schedule' },
  { title: 'why' },
];

/** Lines for a person. */
export function describeStatus(status: ServiceStatus, disks: readonly Disk[]): string[] {
  const { workers, backlog: b, lanes, exports, retries, retention, failures } = status;
  const hosts = [...new Set(workers.map(({ host }) => printable(host, 60)))];
  return [
    `workers    ${workers.length === 0 ? 'none is alive' : `${workers.length} alive, on ${hosts.join(', ')}`}`,
    `loads      ${counts(b.processingLoads, b.queuedLoads, b.oldestWaitingSeconds)}; chunks: ${formatCount(b.runningChunks)} under way, ${formatCount(b.pendingChunks)} to do`,
    `exports    ${counts(b.processingExports, b.queuedExports, b.oldestQueuedExportSeconds)}`,
    `deletions  ${counts(b.processingDeletions, b.queuedDeletions, b.oldestQueuedDeletionSeconds)}`,
    `schedules  ${counts(b.runningRuns + b.waitingRuns, b.queuedRuns, b.oldestQueuedRunSeconds)}`,
    ...disks.map((disk) => `disk       ${describeDisk(disk)}`),
    ...eventsLine(retention),
    ...section(laneColumns, lanes.map(laneCells)),
    ...section(
      exportColumns,
      exports.map(({ environment, jobId, rows, bytes, runningSeconds }) => [
        environment,
        jobId,
        formatCount(rows),
        formatBytes(bytes),
        formatDuration(runningSeconds),
      ]),
    ),
    ...section(
      retryColumns,
      retries.map(({ environment, jobId, type, lastError }) => [
        jobId,
        environment,
        printable(`${type}: ${lastError}`, 120),
      ]),
    ),
    ...section(
      failureColumns,
      failures.map(({ environment, jobId, schedule, type, endedAt, code, message }) => [
        `${endedAt.toISOString().slice(0, 19).replace('T', ' ')}Z`,
        environment,
        jobId ?? schedule ?? '',
        printable(`${type}: ${message} [${code}]`, 120),
      ]),
    ),
  ];
}

export function describeDisk(disk: Disk): string {
  const left = `${formatBytes(disk.freeBytes)} free of ${formatBytes(disk.allBytes)}`;
  return `${isFull(disk) ? 'full: ' : ''}${left} at ${disk.folder}`;
}

/** Nothing where nothing has outlived its retention yet. */
function eventsLine(retention: ServiceStatus['retention']): string[] {
  const { eventsRemoved, eventsArchived, archiveFiles, archiveBytes, error } = retention;
  if (eventsRemoved === 0 && error === null) return [];
  const archived =
    archiveFiles === 0
      ? ''
      : `, ${formatCount(eventsArchived)} in ${formatCount(archiveFiles)} archives of ${formatBytes(archiveBytes)}`;
  const failing = error === null ? '' : `; pruning fails: ${printable(error, 120)}`;
  return [`events     ${formatCount(eventsRemoved)} removed by their retention${archived}${failing}`];
}

function counts(running: number, queued: number, oldestSeconds: number): string {
  const oldest = queued === 0 ? '' : `, the oldest for ${formatDuration(oldestSeconds)}`;
  return `${formatCount(running)} running, ${formatCount(queued)} waiting${oldest}`;
}

function laneCells({ environment, running, waiting, oldestWaitingSeconds }: LaneOverview): string[] {
  const ofJob =
    running === null
      ? ['nothing', '', '', '', '']
      : [
          running.type,
          running.jobId,
          `${formatCount(running.done)} of ${formatCount(running.total)}`,
          running.rowsPerSecond === null ? '–' : formatCount(running.rowsPerSecond),
          formatDuration(running.runningSeconds),
        ];
  const oldest = oldestWaitingSeconds === null ? '' : formatDuration(oldestWaitingSeconds);
  return [environment, ...ofJob, formatCount(waiting), oldest];
}

function section(columns: readonly Column[], rows: readonly (readonly string[])[]): string[] {
  return rows.length === 0 ? [] : ['', ...renderTable(columns, rows)];
}
