import type { Export } from '../domain/export.ts';

/* An export as background jobs are shown, in the API and in webhooks: without links to its files. */

export function exportUrl(baseUrl: string, jobId: string): string {
  return `${baseUrl}/api/v1/analytics/exports/jobs/${jobId}`;
}

/** As the list of all background jobs has it. */
export function renderExportRecord(found: Export, baseUrl: string) {
  const { jobId, status, requestedAt, endedAt, format } = found;
  return {
    job_id: jobId,
    type: 'export' as const,
    status,
    filename: `export-${requestedAt.toISOString().slice(0, 10)}.${format}`,
    file_size: found.bytesWritten,
    total_rows: found.rowsWritten,
    start_time: requestedAt.toISOString(),
    end_time: endedAt?.toISOString() ?? null,
    links: exportUrl(baseUrl, jobId),
  };
}

export function renderExportListItem(found: Export, baseUrl: string, now = new Date()) {
  const ms = (found.endedAt ?? now).getTime() - found.requestedAt.getTime();
  return { ...renderExportRecord(found, baseUrl), elapsed_time: Math.max(0, Math.floor(ms / 1000)) };
}

/** As `/v1/background_jobs/{job_id}` has it. The files are at `links`, for keys that may export. */
export function renderExportDetail(found: Export, baseUrl: string, now = new Date()) {
  return {
    ...renderExportListItem(found, baseUrl, now),
    completed_rows: found.rowsWritten,
    progress: found.progress,
    failure: found.failure && { error_code: found.failure.code, message: found.failure.message },
    last_error: found.lastError,
    attempts: found.attempts,
    rows_per_second: rowsPerSecond(found, now),
  };
}

function rowsPerSecond({ startedAt, endedAt, rowsWritten }: Export, now: Date): number | null {
  if (startedAt === null || rowsWritten === 0) return null;
  const ms = (endedAt ?? now).getTime() - startedAt.getTime();
  return Math.round((rowsWritten * 1000) / Math.max(1, ms));
}
