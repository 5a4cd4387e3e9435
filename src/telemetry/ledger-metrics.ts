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

type Sample = readonly [labels: Readonly<Record<string, string>>, value: number];

/** Gauges by name: what each tells, how it is read, and its labels. A record has a value for each value of the one label. */
type Metrics<T> = Readonly<
  Record<
    string,
    readonly [
      help: string,
      read: (found: T) => number | Readonly<Record<string, number>> | readonly Sample[],
      ...labels: string[],
    ]
  >
>;

const byStatus = ({ queued, processing }: Unfinished) => ({ queued, processing });

const ofBacklog: Metrics<Backlog> = {
  sluice_queue_chunks: [
    'Chunks of unfinished loads by state: pending, running.',
    (of) => ({ pending: of.pendingChunks, running: of.runningChunks }),
    'state',
  ],
  sluice_loads: ['Unfinished loads by status: queued, processing.', (of) => byStatus(of.loads), 'status'],
  sluice_oldest_waiting_seconds: [
    'Seconds since the longest waiting load was accepted; 0 if none waits.',
    (of) => of.loads.oldestSeconds,
  ],
  sluice_notifications_pending: ['Notifications still to be delivered.', (of) => of.pendingNotifications],
  sluice_notifications_dead: [
    'Kept notifications that were given up; a replay takes them off.',
    (of) => of.deadNotifications,
  ],
  sluice_workers: ['Worker processes seen within the last 15 seconds.', (of) => of.liveWorkers],
  sluice_exports: [
    'Unfinished exports by status: queued, processing.',
    (of) => byStatus(of.exports),
    'status',
  ],
  sluice_running_export_rows: ['Rows written so far by running exports.', (of) => of.exportRows],
  sluice_running_export_bytes: ['Bytes written so far by running exports.', (of) => of.exportBytes],
  sluice_oldest_queued_export_seconds: [
    'Seconds since the longest waiting export was requested; 0 if none waits.',
    (of) => of.exports.oldestSeconds,
  ],
  sluice_deletions: [
    'Unfinished deletions by status: queued, processing.',
    (of) => byStatus(of.deletions),
    'status',
  ],
  sluice_oldest_queued_deletion_seconds: [
    'Seconds since the longest waiting deletion was accepted; 0 if none waits.',
    (of) => of.deletions.oldestSeconds,
  ],
  sluice_schedule_runs: [
    'Unfinished runs of schedules by status: queued, running, waiting (for their jobs).',
    (of) => ({ queued: of.runs.queued, running: of.runs.processing, waiting: of.waitingRuns }),
    'status',
  ],
  sluice_oldest_queued_schedule_run_seconds: [
    'Seconds since the longest queued run was made; 0 if none is queued.',
    (of) => of.runs.oldestSeconds,
  ],
};

const outcomes = ['inserted', 'updated', 'unchanged', 'superseded', 'rejected', 'amended'] as const;

const ofRows: Metrics<readonly LoadRows[]> = {
  sluice_load_rows: [
    'Rows of the loads kept in the ledger, without dry runs.',
    (found) =>
      found.flatMap((each) =>
        outcomes.map((outcome): Sample => [{ entity: each.entity, outcome }, each[outcome]]),
      ),
    'entity',
    'outcome',
  ],
  sluice_reconcile_differences: [
    'Completed loads whose counts do not balance. Must be 0.',
    (found) => found.reduce((sum, each) => sum + each.differences, 0),
  ],
};

/** Names of schedules are the only labels without a fixed list; a file has at most 500. */
const ofSchedules: Metrics<SchedulesOverview> = {
  sluice_schedule_runs_last_day: [
    'Runs of schedules that ended within 24 hours, by how they ended.',
    ({ recent }) => ({ ...recent }),
    'status',
  ],
  sluice_schedule_seconds_since_success: [
    'Seconds since a run of the schedule last ended without failing; if none ever did, since its first was due.',
    ({ schedules }) =>
      schedules.map(({ name, secondsSinceSuccess }) => [{ schedule: name }, secondsSinceSuccess]),
    'schedule',
  ],
  sluice_schedule_failing: [
    '1 if the latest run of a schedule failed, without those that were skipped.',
    ({ schedules }) => schedules.map(({ name, failing }) => [{ schedule: name }, failing ? 1 : 0]),
    'schedule',
  ],
};

const ofRetention: Metrics<EventRetention> = {
  sluice_events_removed: [
    'Events that were removed when their retention was over.',
    (of) => of.eventsRemoved,
  ],
  sluice_event_archive_rows: ['Events in archives.', (of) => of.eventsArchived],
  sluice_event_archive_bytes: ['Bytes of the archives of events.', (of) => of.archiveBytes],
  sluice_event_pruning_failing: [
    '1 if the latest pruning of events did not complete.',
    (of) => (of.error === null ? 0 : 1),
  ],
};

const ofDatabase: Metrics<boolean> = {
  sluice_database_up: [
    '1 if the database answered the latest question of this page.',
    (isUp) => (isUp ? 1 : 0),
  ],
};

/** Registers gauges and returns how to set them; `null` takes their values off the page. */
function register<T>(registry: Registry, metrics: Metrics<T>): (found: T | null) => void {
  const gauges = Object.entries(metrics).map(([name, [help, read, ...labels]]) => {
    const gauge = new Gauge({ name, help, labelNames: labels, registers: [registry] });
    return { gauge, read, labels };
  });
  return (found) => {
    for (const { gauge, read, labels } of gauges) {
      if (labels.length > 0) gauge.reset();
      else gauge.remove();
      const samples = found === null ? [] : read(found);
      if (typeof samples === 'number') gauge.set(samples);
      else if (isList(samples)) for (const [values, value] of samples) gauge.set(values, value);
      else for (const [name, value] of Object.entries(samples)) gauge.set({ [labels[0] ?? '']: name }, value);
    }
  };
}

const isList = (samples: object): samples is readonly Sample[] => Array.isArray(samples);

/** Creates gauges that the ledger fills. Call `refresh` before they are read: what cannot be read now is left out. */
export function createLedgerMetrics(registry: Registry, reader: LedgerReader): { refresh(): Promise<void> } {
  const showUp = register(registry, ofDatabase);
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
