import { Counter, collectDefaultMetrics, Gauge, type Histogram, Registry } from 'prom-client';
import type { Health } from './health.ts';
import { createLedgerMetrics, type LedgerReader } from './ledger-metrics.ts';
import type { Distribution, EntityMetrics, HttpMetrics, IngestMetrics } from './request-metrics.ts';

export interface MetricsPage {
  render(): Promise<{ readonly contentType: string; readonly text: string }>;
}

/** What the page shows besides what was counted: all of it is read when somebody scrapes. */
export interface MetricsSources {
  readonly ledger: LedgerReader;
  readonly health: Health;
  /** The connections for records and uploads; a pool of pg counts them so. */
  readonly pool: { readonly totalCount: number; readonly idleCount: number; readonly waitingCount: number };
  /** Of this process, so far. */
  readonly droppedLogLines: () => number;
}

/** What is read when a system is scraped. On a registry of its own: two systems can live in one process. */
export function createMetricsPage(
  counted: IngestMetrics & { readonly http: HttpMetrics },
  { ledger: reader, health, pool, droppedLogLines }: MetricsSources,
): MetricsPage {
  const registry = new Registry();
  const parts = createPartMetrics(registry, health);
  const ledger = createLedgerMetrics(registry, reader);
  showRequests(registry, counted.http);
  showRecords(registry, Object.entries(counted.byEntity));
  showPool(registry, pool);
  showLog(registry, droppedLogLines);
  collectDefaultMetrics({ register: registry });
  return {
    async render() {
      // At a time: each waits up to its deadline for what hangs.
      await Promise.all([parts.refresh(), ledger.refresh()]);
      return { contentType: registry.contentType, text: await registry.metrics() };
    },
  };
}

/** What /health/ready says, for those who watch figures only. */
function createPartMetrics(registry: Registry, health: Health): { refresh(): Promise<void> } {
  const up = new Gauge({
    name: 'sluice_part_up',
    help: 'What the server stands on: 1 if the part answered just now, 0 if it is away. Without Redis the queue is as well as the database.',
    labelNames: ['part'],
    registers: [registry],
  });
  return {
    async refresh() {
      const { parts } = await health.check();
      for (const [part, state] of Object.entries(parts)) up.set({ part }, state === 'ok' ? 1 : 0);
    },
  };
}

function showPool(registry: Registry, pool: MetricsSources['pool']): void {
  new Gauge({
    name: 'sluice_pool_connections',
    help: 'PostgreSQL connections of this process for records and uploads, by what they are: busy, idle.',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      this.set({ state: 'busy' }, pool.totalCount - pool.idleCount);
      this.set({ state: 'idle' }, pool.idleCount);
    },
  });
  new Gauge({
    name: 'sluice_pool_waiting',
    help: 'What waits for one of those connections.',
    registers: [registry],
    collect() {
      this.set(pool.waitingCount);
    },
  });
}

function showRequests(registry: Registry, http: HttpMetrics): void {
  new Counter({
    name: 'sluice_http_requests_total',
    help: 'Requests answered, by the pattern of their route; unknown: no such route.',
    labelNames: ['method', 'route', 'status'],
    registers: [registry],
    collect() {
      this.reset();
      for (const { method, pattern, byStatus } of http.routes) {
        for (const [status, count] of byStatus) this.inc({ method, route: pattern, status }, count);
      }
    },
  });
  showDistributions(registry, {
    name: 'sluice_http_request_duration_seconds',
    help: 'From the head of a request until its answer was ready to be sent.',
    label: 'route',
    read: () => [...http.durations],
  });
}

function showLog(registry: Registry, droppedLogLines: () => number): void {
  new Counter({
    name: 'sluice_log_lines_dropped_total',
    help: 'Lines of the log of this process that could not be written.',
    registers: [registry],
    collect() {
      this.reset();
      this.inc(droppedLogLines());
    },
  });
}

function showRecords(registry: Registry, entities: readonly (readonly [string, EntityMetrics])[]): void {
  showDistributions(registry, {
    name: 'sluice_commit_window_records',
    help: 'Single records, or batches, that shared one transaction.',
    label: 'entity',
    read: () => entities.map(([entity, { windowRecords }]) => [entity, windowRecords]),
  });
  showDistributions(registry, {
    name: 'sluice_commit_window_seconds',
    help: 'How long a commit window took, commit included.',
    label: 'entity',
    read: () => entities.map(([entity, { windowSeconds }]) => [entity, windowSeconds]),
  });
  new Gauge({
    name: 'sluice_commit_window_waiting',
    help: 'Single records, or batches, that wait for a commit window.',
    labelNames: ['entity'],
    registers: [registry],
    collect() {
      for (const [entity, { waiting }] of entities) this.set({ entity }, waiting);
    },
  });
  new Counter({
    name: 'sluice_ingested_records_total',
    help: 'Single records, and items of batches, that ended: committed, refused for what they say, or failed and to be sent again.',
    labelNames: ['entity', 'outcome'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [entity, { ended }] of entities) {
        for (const [outcome, count] of Object.entries(ended)) this.inc({ entity, outcome }, count);
      }
    },
  });
}

interface Distributions {
  readonly name: string;
  readonly help: string;
  readonly label: string;
  readonly read: () => readonly (readonly [string, Distribution])[];
}

/** prom-client's histograms cannot be told what was counted elsewhere; its registry asks no more of a metric than this. */
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
