import { Gauge, type Registry } from 'prom-client';
import { recordOutcomes } from '../domain/load.ts';
import type { ChangeLog } from '../postgres/change-log.ts';
import type { EventRetention } from '../postgres/retention.ts';
import type { HealthReport } from './health/ready.ts';
import type { Backlog, LoadRows, Unfinished } from './health/store.ts';
import type { Metrics } from './metrics.ts';

/** Connections of the pool for records and uploads, as counted by pg. */
export interface PoolCounts {
  readonly totalCount: number;
  readonly idleCount: number;
  readonly waitingCount: number;
}

export type Sample = readonly [labels: Readonly<Record<string, string | number>>, value: number];

/**
 * Gauges by name. Each has a help text, a reader of the value, and labels. If there is one label,
 * the reader may return an object whose keys are the label's values. If there are several labels,
 * the reader returns samples.
 */
export type Gauges<T> = Readonly<
  Record<
    string,
    readonly [
      help: string,
      read: (figures: T) => number | Readonly<Record<string, number>> | readonly Sample[],
      ...labels: string[],
    ]
  >
>;

export const partGauges: Gauges<HealthReport['parts']> = {
  sluice_part_up: [
    'Parts that the server needs: 1 if the part answered just now, 0 if it is away. Without Redis the queue is as well as the database.',
    (parts) => mapValues(parts, (state) => (state === 'ok' ? 1 : 0)),
    'part',
  ],
};

export const poolGauges: Gauges<PoolCounts> = {
  sluice_pool_connections: [
    'PostgreSQL connections of this process for records and uploads, by state: busy, idle.',
    ({ totalCount, idleCount }) => ({ busy: totalCount - idleCount, idle: idleCount }),
    'state',
  ],
  sluice_pool_waiting: ['Callers that wait for one of those connections.', (pool) => pool.waitingCount],
};

export const windowGauges: Gauges<Metrics['byEntity']> = {
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

export const backlogGauges: Gauges<Backlog> = {
  sluice_queue_chunks: [
    'Chunks of unfinished loads by state: pending, running.',
    (figures) => ({ pending: figures.pendingChunks, running: figures.runningChunks }),
    'state',
  ],
  sluice_loads: [
    'Unfinished loads by status: queued, processing, held (waiting for a person).',
    (figures) => ({ ...byStatus(figures.loads), held: figures.heldLoads }),
    'status',
  ],
  sluice_oldest_waiting_seconds: [
    'Seconds since the longest waiting load was accepted; 0 if none waits.',
    (figures) => figures.loads.oldestSeconds,
  ],
  sluice_workers: ['Worker processes seen within the last 15 seconds.', (figures) => figures.liveWorkers],
  sluice_exports: [
    'Unfinished exports by status: queued, processing.',
    (figures) => byStatus(figures.exports),
    'status',
  ],
  sluice_running_export_rows: ['Rows written so far by running exports.', (figures) => figures.exportRows],
  sluice_running_export_bytes: ['Bytes written so far by running exports.', (figures) => figures.exportBytes],
  sluice_oldest_queued_export_seconds: [
    'Seconds since the longest waiting export was requested; 0 if none waits.',
    (figures) => figures.exports.oldestSeconds,
  ],
  sluice_deletions: [
    'Unfinished deletions by status: queued, processing.',
    (figures) => byStatus(figures.deletions),
    'status',
  ],
  sluice_oldest_queued_deletion_seconds: [
    'Seconds since the longest waiting deletion was accepted; 0 if none waits.',
    (figures) => figures.deletions.oldestSeconds,
  ],
};

export const rowGauges: Gauges<readonly LoadRows[]> = {
  sluice_load_rows: [
    'Rows of the loads kept in the ledger, without dry runs.',
    (rows) =>
      rows.flatMap((each) =>
        recordOutcomes.map((outcome): Sample => [{ entity: each.entity, outcome }, each[outcome]]),
      ),
    'entity',
    'outcome',
  ],
  sluice_reconcile_differences: [
    'Completed loads whose counts do not balance. Must be 0.',
    (rows) => rows.reduce((sum, each) => sum + each.differences, 0),
  ],
};

export const retentionGauges: Gauges<EventRetention> = {
  sluice_events_removed: [
    'Events that were removed when their retention was over.',
    (figures) => figures.eventsRemoved,
  ],
  sluice_event_pruning_failing: [
    '1 if the latest pruning of events did not complete.',
    (figures) => (figures.error === null ? 0 : 1),
  ],
};

export const changeGauges: Gauges<ChangeLog> = {
  sluice_change_log_on: [
    '1 if changes of users and companies are kept (CHANGES_DAYS).',
    (figures) => Number(figures.isOn),
  ],
  sluice_change_log_bytes: ['Bytes of the log of changes, with its indexes.', (figures) => figures.bytes],
  sluice_change_log_days: ['Days that the log of changes reaches back.', (figures) => figures.days],
  sluice_change_log_stray_rows: [
    'Changes that came while the partition of their day was missing; 1000: as many or more.',
    (figures) => figures.strayRows,
  ],
  sluice_change_log_prepared: [
    '1 if the partition for the changes of tomorrow exists.',
    (figures) => Number(figures.hasTomorrow),
  ],
};

export const databaseGauges: Gauges<boolean> = {
  sluice_database_up: [
    '1 if the database answered the latest question of this page.',
    (isUp) => (isUp ? 1 : 0),
  ],
};

/**
 * Registers the gauges. Returns a function that sets their values or, if it gets `null`, removes
 * the gauges from the page.
 */
export function register<T>(registry: Registry, metrics: Gauges<T>): (figures: T | null) => void {
  const gauges = Object.entries(metrics).map(([name, [help, read, ...labels]]) => {
    const gauge = new Gauge({ name, help, labelNames: labels, registers: [registry] });
    return { gauge, read, labels };
  });
  return (figures) => {
    for (const { gauge, read, labels } of gauges) {
      if (labels.length > 0) gauge.reset();
      else gauge.remove();
      const samples = figures === null ? [] : read(figures);
      if (typeof samples === 'number') gauge.set(samples);
      else if (isList(samples)) for (const [values, value] of samples) gauge.set(values, value);
      else for (const [name, value] of Object.entries(samples)) gauge.set({ [labels[0] ?? '']: name }, value);
    }
  };
}

const isList = (samples: object): samples is readonly Sample[] => Array.isArray(samples);
