import type { ScheduleRun } from '../../postgres/ledger/read-schedule-runs.ts';
import type { RunItem } from '../../postgres/ledger/schedule-items.ts';
import { printable } from '../table.ts';

export const runColumns = [
  { title: 'schedule' },
  { title: 'due' },
  { title: 'status' },
  { title: 'why' },
  { title: 'ended' },
  { title: 'jobs', align: 'right' },
  { title: 'remark' },
] as const;

/** `2026-11-20 03:00:00Z`, or a dash. */
export function showTime(at: Date | null): string {
  return at === null ? '–' : `${at.toISOString().slice(0, 19).replace('T', ' ')}Z`;
}

export function runCells(run: ScheduleRun, items: readonly RunItem[]): string[] {
  const passed = run.missed > 0 ? `stands for ${run.missed} more; ` : '';
  const problem = run.reason ?? (run.endedAt === null ? run.lastError : null) ?? '';
  return [
    run.name,
    showTime(run.dueAt),
    run.status,
    run.cause.replace('_', ' '),
    showTime(run.endedAt),
    String(items.filter(({ jobId }) => jobId !== null).length),
    printable(`${passed}${problem}`, 80),
  ];
}

export function renderRun(run: ScheduleRun, items: readonly RunItem[]): object {
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
