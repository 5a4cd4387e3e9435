import { Gauge, type Registry } from 'prom-client';
import type { Backlog, LoadRows } from '../postgres/stores/overview.ts';
import type { EventRetention } from '../postgres/stores/retention.ts';
import type { SchedulesOverview } from '../postgres/stores/schedules.ts';
import { type Answer, createProbe } from './health.ts';

/** How the ledger is read; all throw while the database is away. */
export interface LedgerReader {
  backlog(): Promise<Backlog>;
  loadRows(): Promise<LoadRows[]>;
  schedules(): Promise<SchedulesOverview>;
  retention(): Promise<EventRetention>;
}

/** A scrape waits no longer than this for the database. */
const deadlineMs = 1_500;
const freshMs = 5_000;
/** Reading all loads, and many runs of schedules, may take up a hundredth of a connection's time, whatever is kept. */
const restPerWork = 100;

const outcomes = ['inserted', 'updated', 'unchanged', 'superseded', 'rejected', 'amended'] as const;

/** Gauges that the ledger fills. Call `refresh` before they are read: what cannot be read now is left out. */
export function createLedgerMetrics(registry: Registry, reader: LedgerReader): { refresh(): Promise<void> } {
  const gauge = <const L extends string>(name: string, help: string, ...labelNames: L[]) =>
    new Gauge<L>({ name, help, labelNames, registers: [registry] });
  const up = gauge('sluice_database_up', '1 if the database answered the latest question of this page.');
  const chunks = gauge(
    'sluice_queue_chunks',
    'Chunks of unfinished loads, by what they are: pending, running.',
    'state',
  );
  const loads = gauge('sluice_loads', 'Unfinished loads, by what they are: queued, processing.', 'status');
  const oldest = gauge(
    'sluice_oldest_waiting_seconds',
    'Since the longest waiting load was accepted; 0: none waits.',
  );
  const notifications = gauge('sluice_notifications_pending', 'Notifications still to be delivered.');
  const dead = gauge(
    'sluice_notifications_dead',
    'Notifications that were given up, of those that are kept; a replay takes them off.',
  );
  const workers = gauge('sluice_workers', 'Worker processes that showed their life within 15 seconds.');
  const jobs = createJobGauges(gauge);
  const schedules = createScheduleGauges(gauge);
  const retention = createRetentionGauges(gauge);
  const rows = gauge(
    'sluice_load_rows',
    'Rows of the loads kept in the ledger, dry runs aside.',
    'entity',
    'outcome',
  );
  const differences = gauge(
    'sluice_reconcile_differences',
    'Completed loads whose counts do not balance. Must be 0.',
  );
  const askBacklog = createProbe(reader.backlog, {
    deadlineMs,
    keepMs: (_tookMs, failed) => (failed ? 0 : freshMs),
  });
  let latestRows: readonly LoadRows[] | null = null;
  let latestSchedules: SchedulesOverview | null = null;
  let latestRetention: EventRetention | null = null;
  // One after the other: the second connection that watches is wanted for /health/ready.
  const askTotals = createProbe(
    async () => {
      latestRows = await reader.loadRows().catch(() => null);
      latestSchedules = await reader.schedules().catch(() => null);
      latestRetention = await reader.retention().catch(() => null);
    },
    { deadlineMs, keepMs: (tookMs) => Math.max(freshMs, tookMs * restPerWork) },
  );

  const showBacklog = (answer: Answer<Backlog>): void => {
    up.set('error' in answer ? 0 : 1);
    if ('error' in answer) {
      chunks.reset();
      loads.reset();
      for (const each of [oldest, notifications, dead, workers]) each.remove();
      jobs.clear();
      schedules.showBacklog(null);
      return;
    }
    const { value } = answer;
    chunks.set({ state: 'pending' }, value.pendingChunks);
    chunks.set({ state: 'running' }, value.runningChunks);
    loads.set({ status: 'queued' }, value.queuedLoads);
    loads.set({ status: 'processing' }, value.processingLoads);
    oldest.set(value.oldestWaitingSeconds);
    notifications.set(value.pendingNotifications);
    dead.set(value.deadNotifications);
    workers.set(value.liveWorkers);
    jobs.show(value);
    schedules.showBacklog(value);
  };

  const showRows = (found: readonly LoadRows[] | null): void => {
    rows.reset();
    differences.remove();
    if (found === null) return;
    for (const each of found) {
      for (const outcome of outcomes) rows.set({ entity: each.entity, outcome }, each[outcome]);
    }
    differences.set(found.reduce((sum, each) => sum + each.differences, 0));
  };

  return {
    async refresh() {
      const backlog = await askBacklog();
      showBacklog(backlog);
      const away = 'error' in backlog;
      // Should they take longer than the scrape waits, those read before are shown.
      if (!away) await askTotals();
      showRows(away ? null : latestRows);
      schedules.show(away ? null : latestSchedules);
      retention.show(away ? null : latestRetention);
    },
  };
}

/** What is unfinished besides loads: exports and deletions. */
function createJobGauges(gauge: MakeGauge): { show(backlog: Backlog): void; clear(): void } {
  const exports = gauge(
    'sluice_exports',
    'Unfinished exports, by what they are: queued, processing.',
    'status',
  );
  const exportRows = gauge('sluice_running_export_rows', 'Rows written so far by the exports that run.');
  const exportBytes = gauge('sluice_running_export_bytes', 'Bytes written so far by the exports that run.');
  const oldestExport = gauge(
    'sluice_oldest_queued_export_seconds',
    'Since the longest waiting export was requested; 0: none waits.',
  );
  const deletions = gauge(
    'sluice_deletions',
    'Unfinished deletions, by what they are: queued, processing.',
    'status',
  );
  const oldestDeletion = gauge(
    'sluice_oldest_queued_deletion_seconds',
    'Since the longest waiting deletion was accepted; 0: none waits.',
  );
  return {
    show(backlog) {
      exports.set({ status: 'queued' }, backlog.queuedExports);
      exports.set({ status: 'processing' }, backlog.processingExports);
      exportRows.set(backlog.exportRows);
      exportBytes.set(backlog.exportBytes);
      oldestExport.set(backlog.oldestQueuedExportSeconds);
      deletions.set({ status: 'queued' }, backlog.queuedDeletions);
      deletions.set({ status: 'processing' }, backlog.processingDeletions);
      oldestDeletion.set(backlog.oldestQueuedDeletionSeconds);
    },
    clear() {
      exports.reset();
      deletions.reset();
      for (const one of [exportRows, exportBytes, oldestExport, oldestDeletion]) one.remove();
    },
  };
}

/** Gauges of the events that outlived their retention. */
function createRetentionGauges(gauge: MakeGauge): { show(retention: EventRetention | null): void } {
  const removed = gauge(
    'sluice_events_removed',
    'Events that were removed because they outlived their retention.',
  );
  const rows = gauge('sluice_event_archive_rows', 'Events in archives.');
  const bytes = gauge('sluice_event_archive_bytes', 'Bytes of the archives of events.');
  const failing = gauge(
    'sluice_event_pruning_failing',
    '1 if the latest pruning of events did not do all that was to be done.',
  );
  return {
    show(retention) {
      if (retention === null) {
        for (const each of [removed, rows, bytes, failing]) each.remove();
        return;
      }
      removed.set(retention.eventsRemoved);
      rows.set(retention.eventsArchived);
      bytes.set(retention.archiveBytes);
      failing.set(retention.error === null ? 0 : 1);
    },
  };
}

type MakeGauge = <const L extends string>(name: string, help: string, ...labelNames: L[]) => Gauge<L>;

/** Gauges of what runs by the clock. Names of schedules are the only labels without a list; a file has 500 at most. */
function createScheduleGauges(gauge: MakeGauge): {
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
