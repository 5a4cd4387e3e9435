import type pg from 'pg';
import { Counter, collectDefaultMetrics, Gauge, type Histogram, Registry } from 'prom-client';
import { outcomes } from '../domain/load.ts';
import { type ChangeLog, readChangeLog } from '../postgres/stores/change-log.ts';
import {
  type Backlog,
  type LoadRows,
  readBacklog,
  readLoadRows,
  readSchedules,
  type SchedulesOverview,
  type Unfinished,
} from '../postgres/stores/health.ts';
import { type EventRetention, readEventRetention } from '../postgres/stores/retention.ts';
import { createProbe, type Health, type HealthReport } from './health.ts';
import type { Distribution, Metrics, MetricsPage } from './metrics.ts';

export interface MetricsSources {
  readonly watch: pg.Pool;
  readonly health: Health;
  /** Connections for records and uploads, as a pool of pg counts them. */
  readonly pool: { readonly totalCount: number; readonly idleCount: number; readonly waitingCount: number };
  readonly droppedLogLines: () => number;
}

/** Creates the page of a system, on a registry of its own: two systems can live in one process. */
export function createMetricsPage(
  counted: Metrics,
  { watch, health, pool, droppedLogLines }: MetricsSources,
): MetricsPage {
  const registry = new Registry();
  const showParts = register(registry, ofParts);
  const showPool = register(registry, ofPool);
  const showWindows = register(registry, ofWindows);
  const ledger = createLedgerMetrics(registry, watch);
  showRequests(registry, counted);
  showRecords(registry, counted.byEntity);
  const dropped = 'Lines of the log of this process that could not be written.';
  count(registry, ['sluice_log_lines_dropped_total', dropped], () => [[{}, droppedLogLines()]]);
  collectDefaultMetrics({ register: registry });
  return {
    async render() {
      const [{ parts }] = await Promise.all([health.check(), ledger.refresh()]);
      showParts(parts);
      showPool(pool);
      showWindows(counted.byEntity);
      return { contentType: registry.contentType, text: await registry.metrics() };
    },
  };
}

type Sample = readonly [labels: Readonly<Record<string, string | number>>, value: number];

/** Registers a counter whose values are read when the page is. */
function count(
  registry: Registry,
  [name, help, ...labels]: readonly [name: string, help: string, ...labels: readonly string[]],
  read: () => readonly Sample[],
): void {
  const counter: Counter = new Counter({
    ...{ name, help, labelNames: [...labels], registers: [registry] },
    collect: () => {
      counter.reset();
      for (const [values, value] of read()) counter.inc(values, value);
    },
  });
}

function showRequests(registry: Registry, metrics: Metrics): void {
  const help = 'Answered requests by the pattern of their route; unknown: no such route.';
  count(registry, ['sluice_http_requests_total', help, 'method', 'route', 'status'], () =>
    [...metrics.routes].flatMap(({ method, pattern, byStatus }) =>
      [...byStatus].map(([status, count]): Sample => [{ method, route: pattern, status }, count]),
    ),
  );
  showDistributions(registry, {
    name: 'sluice_http_request_duration_seconds',
    help: 'Seconds from the head of a request until its answer was ready to be sent.',
    label: 'route',
    read: () => [...metrics.durations],
  });
}

function showRecords(registry: Registry, byEntity: Metrics['byEntity']): void {
  const entities = Object.entries(byEntity);
  showDistributions(registry, {
    name: 'sluice_commit_window_records',
    help: 'Single records, or batches, that shared one transaction.',
    label: 'entity',
    read: () => entities.map(([entity, { windowRecords }]) => [entity, windowRecords]),
  });
  showDistributions(registry, {
    name: 'sluice_commit_window_seconds',
    help: 'Seconds that a commit window took, including the commit.',
    label: 'entity',
    read: () => entities.map(([entity, { windowSeconds }]) => [entity, windowSeconds]),
  });
  const help =
    'Single records, and items of batches, by outcome: accepted (committed), refused (the caller must change them), failed (to be sent again).';
  count(registry, ['sluice_ingested_records_total', help, 'entity', 'outcome'], () =>
    entities.flatMap(([entity, { ended }]) =>
      Object.entries(ended).map(([outcome, count]): Sample => [{ entity, outcome }, count]),
    ),
  );
}

interface Distributions {
  readonly name: string;
  readonly help: string;
  readonly label: string;
  readonly read: () => readonly (readonly [string, Distribution])[];
}

/** prom-client's histograms take no counts from elsewhere; its registry needs no more of a metric than this. */
function showDistributions(registry: Registry, { name, help, label, read }: Distributions): void {
  const metric = {
    name,
    get: async () => ({
      name,
      help,
      type: 'histogram',
      aggregator: 'sum',
      values: read().flatMap(([value, distribution]) => samples(name, { [label]: value }, distribution)),
    }),
  };
  registry.registerMetric(metric as unknown as Histogram);
}

function samples(name: string, labels: Readonly<Record<string, string>>, distribution: Distribution) {
  const { bounds, counts, sum } = distribution;
  let total = 0;
  const buckets = [...bounds, '+Inf'].map((le, at) => {
    total += counts[at] ?? 0;
    return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: total };
  });
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: total },
  ];
}

const deadlineMs = 1_500;
const freshMs = 5_000;
/** Reading all loads, and many runs of schedules, may take a hundredth of a connection's time. */
const restPerWork = 100;

/** Gauges by name: what each tells, how it is read, and its labels. A record has a value for each value of the one label. */
type Gauges<T> = Readonly<
  Record<
    string,
    readonly [
      help: string,
      read: (found: T) => number | Readonly<Record<string, number>> | readonly Sample[],
      ...labels: string[],
    ]
  >
>;

const ofParts: Gauges<HealthReport['parts']> = {
  sluice_part_up: [
    'Parts that the server needs: 1 if the part answered just now, 0 if it is away. Without Redis the queue is as well as the database.',
    (parts) => mapValues(parts, (state) => (state === 'ok' ? 1 : 0)),
    'part',
  ],
};

const ofPool: Gauges<MetricsSources['pool']> = {
  sluice_pool_connections: [
    'PostgreSQL connections of this process for records and uploads, by state: busy, idle.',
    ({ totalCount, idleCount }) => ({ busy: totalCount - idleCount, idle: idleCount }),
    'state',
  ],
  sluice_pool_waiting: ['Callers that wait for one of those connections.', (pool) => pool.waitingCount],
};

const ofWindows: Gauges<Metrics['byEntity']> = {
  sluice_commit_window_waiting: [
    'Single records, or batches, that wait for a commit window.',
    (byEntity) => mapValues(byEntity, ({ waiting }) => waiting),
    'entity',
  ],
};

function mapValues<V>(record: Readonly<Record<string, V>>, read: (value: V) => number) {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, read(value)]));
}

const byStatus = ({ queued, processing }: Unfinished) => ({ queued, processing });

const ofBacklog: Gauges<Backlog> = {
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

const ofRows: Gauges<readonly LoadRows[]> = {
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
const ofSchedules: Gauges<SchedulesOverview> = {
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

const ofRetention: Gauges<EventRetention> = {
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

const ofChanges: Gauges<ChangeLog> = {
  sluice_change_log_on: [
    '1 if changes of users and companies are kept (CHANGES_DAYS).',
    (of) => Number(of.isOn),
  ],
  sluice_change_log_bytes: ['Bytes of the log of changes, with its indexes.', (of) => of.bytes],
  sluice_change_log_days: ['Days that the log of changes reaches back.', (of) => of.days],
  sluice_change_log_stray_rows: [
    'Changes that came while the partition of their day was missing; 1000: as many or more.',
    (of) => of.strayRows,
  ],
  sluice_change_log_prepared: [
    '1 if the partition for the changes of tomorrow exists.',
    (of) => Number(of.hasTomorrow),
  ],
};

const ofDatabase: Gauges<boolean> = {
  sluice_database_up: [
    '1 if the database answered the latest question of this page.',
    (isUp) => (isUp ? 1 : 0),
  ],
};

/** Registers gauges and returns how to set them; `null` takes their values off the page. */
function register<T>(registry: Registry, metrics: Gauges<T>): (found: T | null) => void {
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
function createLedgerMetrics(registry: Registry, watch: pg.Pool): { refresh(): Promise<void> } {
  const showUp = register(registry, ofDatabase);
  const showBacklog = register(registry, ofBacklog);
  const total = <T>(metrics: Gauges<T>, read: (watch: pg.Pool) => Promise<T>) => {
    const show = register(registry, metrics);
    let found: T | null = null;
    return {
      read: async () => (found = await read(watch).catch(() => null)),
      show: (isUp: boolean) => show(isUp ? found : null),
    };
  };
  const totals = [
    total(ofRows, readLoadRows),
    total(ofSchedules, readSchedules),
    total(ofRetention, readEventRetention),
    total(ofChanges, readChangeLog),
  ];
  const askBacklog = createProbe(() => readBacklog(watch), {
    deadlineMs,
    keepMs: (_tookMs, failed) => (failed ? 0 : freshMs),
  });
  // In sequence, since /health/ready needs the second connection that watches.
  const askTotals = createProbe(
    async () => {
      for (const { read } of totals) await read();
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
      for (const { show } of totals) show(isUp);
    },
  };
}
