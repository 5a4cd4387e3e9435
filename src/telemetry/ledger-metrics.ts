import { Gauge, type Registry } from 'prom-client';
import type { Backlog, LoadRows, SchedulesOverview, Unfinished } from '../postgres/stores/health.ts';
import type { EventRetention } from '../postgres/stores/retention.ts';
import { createProbe } from './health.ts';

/** Reads the ledger; every method throws while the database is away. */
export interface LedgerReader {
  backlog(): Promise<Backlog>;
  loadRows(): Promise<LoadRows[]>;
  schedules(): Promise<SchedulesOverview>;
  retention(): Promise<EventRetention>;
}

/** A scrape waits no longer than this for the database. */
const deadlineMs = 1_500;
const freshMs = 5_000;
/** Reading all loads, and many runs of schedules, may take a hundredth of a connection's time. */
const restPerWork = 100;

/** A gauge: its name, help and labels, and its value for each set of labels. */
interface Metric<T> {
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly string[];
  readonly read: (found: T) => number | readonly Sample[];
}

type Sample = readonly [labels: Readonly<Record<string, string>>, value: number];

const byLabel = (label: string, values: Readonly<Record<string, number>>): Sample[] =>
  Object.entries(values).map(([name, value]) => [{ [label]: name }, value]);

const byStatus = ({ queued, processing }: Unfinished): Sample[] => byLabel('status', { queued, processing });

const ofBacklog: readonly Metric<Backlog>[] = [
  {
    name: 'sluice_queue_chunks',
    help: 'Chunks of unfinished loads by state: pending, running.',
    labels: ['state'],
    read: ({ pendingChunks, runningChunks }) =>
      byLabel('state', { pending: pendingChunks, running: runningChunks }),
  },
  {
    name: 'sluice_loads',
    help: 'Unfinished loads by status: queued, processing.',
    labels: ['status'],
    read: ({ loads }) => byStatus(loads),
  },
  {
    name: 'sluice_oldest_waiting_seconds',
    help: 'Seconds since the longest waiting load was accepted; 0 if none waits.',
    read: ({ loads }) => loads.oldestSeconds,
  },
  {
    name: 'sluice_notifications_pending',
    help: 'Notifications still to be delivered.',
    read: ({ pendingNotifications }) => pendingNotifications,
  },
  {
    name: 'sluice_notifications_dead',
    help: 'Kept notifications that were given up; a replay takes them off.',
    read: ({ deadNotifications }) => deadNotifications,
  },
  {
    name: 'sluice_workers',
    help: 'Worker processes seen within the last 15 seconds.',
    read: ({ liveWorkers }) => liveWorkers,
  },
  {
    name: 'sluice_exports',
    help: 'Unfinished exports by status: queued, processing.',
    labels: ['status'],
    read: ({ exports }) => byStatus(exports),
  },
  {
    name: 'sluice_running_export_rows',
    help: 'Rows written so far by running exports.',
    read: ({ exportRows }) => exportRows,
  },
  {
    name: 'sluice_running_export_bytes',
    help: 'Bytes written so far by running exports.',
    read: ({ exportBytes }) => exportBytes,
  },
  {
    name: 'sluice_oldest_queued_export_seconds',
    help: 'Seconds since the longest waiting export was requested; 0 if none waits.',
    read: ({ exports }) => exports.oldestSeconds,
  },
  {
    name: 'sluice_deletions',
    help: 'Unfinished deletions by status: queued, processing.',
    labels: ['status'],
    read: ({ deletions }) => byStatus(deletions),
  },
  {
    name: 'sluice_oldest_queued_deletion_seconds',
    help: 'Seconds since the longest waiting deletion was accepted; 0 if none waits.',
    read: ({ deletions }) => deletions.oldestSeconds,
  },
  {
    name: 'sluice_schedule_runs',
    help: 'Unfinished runs of schedules by status: queued, running, waiting (for their jobs).',
    labels: ['status'],
    read: ({ runs, waitingRuns }) =>
      byLabel('status', { queued: runs.queued, running: runs.processing, waiting: waitingRuns }),
  },
  {
    name: 'sluice_oldest_queued_schedule_run_seconds',
    help: 'Seconds since the longest queued run was made; 0 if none is queued.',
    read: ({ runs }) => runs.oldestSeconds,
  },
];

const outcomes = ['inserted', 'updated', 'unchanged', 'superseded', 'rejected', 'amended'] as const;

const ofRows: readonly Metric<readonly LoadRows[]>[] = [
  {
    name: 'sluice_load_rows',
    help: 'Rows of the loads kept in the ledger, without dry runs.',
    labels: ['entity', 'outcome'],
    read: (found) =>
      found.flatMap((each) =>
        outcomes.map((outcome): Sample => [{ entity: each.entity, outcome }, each[outcome]]),
      ),
  },
  {
    name: 'sluice_reconcile_differences',
    help: 'Completed loads whose counts do not balance. Must be 0.',
    read: (found) => found.reduce((sum, each) => sum + each.differences, 0),
  },
];

/** Names of schedules are the only labels without a fixed list; a file has at most 500. */
const ofSchedules: readonly Metric<SchedulesOverview>[] = [
  {
    name: 'sluice_schedule_runs_last_day',
    help: 'Runs of schedules that ended within 24 hours, by how they ended.',
    labels: ['status'],
    read: ({ recent }) => byLabel('status', { ...recent }),
  },
  {
    name: 'sluice_schedule_seconds_since_success',
    help: 'Seconds since a run of the schedule last ended without failing; if none ever did, since its first was due.',
    labels: ['schedule'],
    read: ({ schedules }) =>
      schedules.map(({ name, secondsSinceSuccess }) => [{ schedule: name }, secondsSinceSuccess]),
  },
  {
    name: 'sluice_schedule_failing',
    help: '1 if the latest run of a schedule failed, without those that were skipped.',
    labels: ['schedule'],
    read: ({ schedules }) => schedules.map(({ name, failing }) => [{ schedule: name }, failing ? 1 : 0]),
  },
];

const ofRetention: readonly Metric<EventRetention>[] = [
  {
    name: 'sluice_events_removed',
    help: 'Events that were removed when their retention was over.',
    read: ({ eventsRemoved }) => eventsRemoved,
  },
  {
    name: 'sluice_event_archive_rows',
    help: 'Events in archives.',
    read: ({ eventsArchived }) => eventsArchived,
  },
  {
    name: 'sluice_event_archive_bytes',
    help: 'Bytes of the archives of events.',
    read: ({ archiveBytes }) => archiveBytes,
  },
  {
    name: 'sluice_event_pruning_failing',
    help: '1 if the latest pruning of events did not complete.',
    read: ({ error }) => (error === null ? 0 : 1),
  },
];

/** Registers gauges and returns how to set them; `null` takes their values off the page. */
function register<T>(registry: Registry, metrics: readonly Metric<T>[]): (found: T | null) => void {
  const gauges = metrics.map(({ name, help, labels = [], read }) => {
    const gauge = new Gauge({ name, help, labelNames: [...labels], registers: [registry] });
    return { gauge, read, hasLabels: labels.length > 0 };
  });
  return (found) => {
    for (const { gauge, read, hasLabels } of gauges) {
      if (hasLabels) gauge.reset();
      else gauge.remove();
      const samples = found === null ? [] : read(found);
      if (typeof samples === 'number') gauge.set(samples);
      else for (const [labels, value] of samples) gauge.set(labels, value);
    }
  };
}

/** Creates gauges that the ledger fills. Call `refresh` before they are read: what cannot be read now is left out. */
export function createLedgerMetrics(registry: Registry, reader: LedgerReader): { refresh(): Promise<void> } {
  const showUp = register<boolean>(registry, [
    {
      name: 'sluice_database_up',
      help: '1 if the database answered the latest question of this page.',
      read: (isUp) => (isUp ? 1 : 0),
    },
  ]);
  const showBacklog = register(registry, ofBacklog);
  const showRows = register(registry, ofRows);
  const showSchedules = register(registry, ofSchedules);
  const showRetention = register(registry, ofRetention);
  const askBacklog = createProbe(reader.backlog, {
    deadlineMs,
    keepMs: (_tookMs, failed) => (failed ? 0 : freshMs),
  });
  let rows: readonly LoadRows[] | null = null;
  let schedules: SchedulesOverview | null = null;
  let retention: EventRetention | null = null;
  // In sequence, since /health/ready needs the second connection that watches.
  const askTotals = createProbe(
    async () => {
      rows = await reader.loadRows().catch(() => null);
      schedules = await reader.schedules().catch(() => null);
      retention = await reader.retention().catch(() => null);
    },
    { deadlineMs, keepMs: (tookMs) => Math.max(freshMs, tookMs * restPerWork) },
  );
  return {
    async refresh() {
      const backlog = await askBacklog();
      const isUp = 'value' in backlog;
      showUp(isUp);
      showBacklog(isUp ? backlog.value : null);
      // If reading takes longer than a scrape waits, the totals of the time before are shown.
      if (isUp) await askTotals();
      showRows(isUp ? rows : null);
      showSchedules(isUp ? schedules : null);
      showRetention(isUp ? retention : null);
    },
  };
}
