import type { ServiceStatus } from '../../background-jobs/read-status.ts';
import type { Disk } from '../../files/disk.ts';

/** For scripts; times are ISO 8601, spans in seconds. */
export function renderStatus(
  { workers, backlog, lanes, exports, retries, retention, failures }: ServiceStatus,
  disks: readonly Disk[],
) {
  const waits = [
    backlog.oldestWaitingSeconds,
    backlog.oldestQueuedExportSeconds,
    backlog.oldestQueuedDeletionSeconds,
  ];
  return {
    workers: workers.map(({ host, pid, startedAt }) => ({ host, pid, started_at: startedAt.toISOString() })),
    loads: { queued: backlog.queuedLoads, processing: backlog.processingLoads },
    chunks: { pending: backlog.pendingChunks, running: backlog.runningChunks },
    exports: { queued: backlog.queuedExports, processing: backlog.processingExports },
    deletions: { queued: backlog.queuedDeletions, processing: backlog.processingDeletions },
    schedule_runs: {
      queued: backlog.queuedRuns,
      running: backlog.runningRuns,
      waiting: backlog.waitingRuns,
    },
    oldest_waiting_seconds: Math.max(...waits),
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
