import type { RunItem, ScheduleRun } from '../../postgres/stores/schedule-run-items.ts';
import { printable } from '../table.ts';

export const runColumns = [
  { title: 'schedule' },
  { title: 'environment' },
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
  const passed = run.missed > 0 ? `stands for ${run.missed} more` : '';
  const problem = run.reason ?? (run.endedAt === null ? run.lastError : null) ?? '';
  return [
    run.name,
    run.environment,
    showTime(run.dueAt),
    run.status,
    run.cause.replace('_', ' '),
    showTime(run.endedAt),
    String(items.filter(({ jobId }) => jobId !== null).length),
    printable([passed, problem].filter((each) => each !== '').join('; '), 160),
  ];
}
