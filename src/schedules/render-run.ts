import type { RunItem, ScheduleRun } from '../postgres/stores/schedule-run-items.ts';

/** A run as `--json` and notifications have it. Times are ISO 8601, UTC, with milliseconds. */
export function renderRun(run: ScheduleRun, items: readonly RunItem[]) {
  return {
    schedule: run.name,
    environment: run.environment,
    due_at: run.dueAt.toISOString(),
    status: run.status,
    cause: run.cause,
    missed: run.missed,
    attempts: run.attempts,
    started_at: run.startedAt?.toISOString() ?? null,
    ended_at: run.endedAt?.toISOString() ?? null,
    range_from: run.rangeFrom?.toISOString() ?? null,
    range_to: run.rangeTo?.toISOString() ?? null,
    delivered_to: run.deliveredTo,
    error_code: run.code,
    message: run.reason,
    last_error: run.lastError,
    items: items.map(({ item, jobId, isNew, error }) => ({
      item,
      job_id: jobId,
      is_new: isNew,
      error_code: error?.code ?? null,
      message: error?.message ?? null,
    })),
  };
}
