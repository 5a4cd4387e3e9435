import type { Gauge } from 'prom-client';
import type { Backlog } from '../postgres/ledger/overview.ts';
import type { SchedulesOverview } from '../postgres/stores/schedules.ts';

export type MakeGauge = <const L extends string>(name: string, help: string, ...labelNames: L[]) => Gauge<L>;

/** Gauges of what runs by the clock. Names of schedules are the only labels without a list; a file has 500 at most. */
export function createScheduleGauges(gauge: MakeGauge): {
  showBacklog(backlog: Backlog | null): void;
  show(overview: SchedulesOverview | null): void;
} {
  const open = gauge(
    'sluice_schedule_runs',
    'Unfinished runs of schedules, by what they are: queued, running, waiting (for their jobs).',
    'status',
  );
  const oldest = gauge(
    'sluice_oldest_queued_schedule_run_seconds',
    'Since the longest queued run was made; 0: none is.',
  );
  const recent = gauge(
    'sluice_schedule_runs_last_day',
    'Runs of schedules that ended within 24 hours, by how they ended.',
    'status',
  );
  const sinceSuccess = gauge(
    'sluice_schedule_seconds_since_success',
    'Since the last run of a schedule that did not fail ended; of one that always did, since its first was due.',
    'schedule',
  );
  const failing = gauge(
    'sluice_schedule_failing',
    '1 if the latest run of a schedule failed, those aside that were skipped.',
    'schedule',
  );
  return {
    showBacklog(backlog) {
      open.reset();
      oldest.remove();
      if (backlog === null) return;
      open.set({ status: 'queued' }, backlog.queuedRuns);
      open.set({ status: 'running' }, backlog.runningRuns);
      open.set({ status: 'waiting' }, backlog.waitingRuns);
      oldest.set(backlog.oldestQueuedRunSeconds);
    },
    show(overview) {
      for (const each of [recent, sinceSuccess, failing]) each.reset();
      if (overview === null) return;
      for (const [status, count] of Object.entries(overview.recent)) recent.set({ status }, count);
      for (const { name, secondsSinceSuccess, failing: fails } of overview.schedules) {
        sinceSuccess.set({ schedule: name }, secondsSinceSuccess);
        failing.set({ schedule: name }, fails ? 1 : 0);
      }
    },
  };
}
