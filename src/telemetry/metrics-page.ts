import { Counter, collectDefaultMetrics, Gauge, type Histogram, Registry } from 'prom-client';
import type { Health } from './health.ts';
import { createLedgerMetrics, type LedgerReader } from './ledger-metrics.ts';
import type { Distribution, EntityMetrics, HttpMetrics, IngestMetrics } from './request-metrics.ts';

export interface MetricsPage {
  render(): Promise<{ readonly contentType: string; readonly text: string }>;
}

/** Sources that are read by each scrape. */
export interface MetricsSources {
  readonly ledger: LedgerReader;
  readonly health: Health;
  /** Connections for records and uploads, as a pool of pg counts them. */
  readonly pool: { readonly totalCount: number; readonly idleCount: number; readonly waitingCount: number };
  readonly droppedLogLines: () => number;
}

/** Creates the page of a system, on a registry of its own: two systems can live in one process. */
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
  const dropped = 'Lines of the log of this process that could not be written.';
  show(registry, 'counter', ['sluice_log_lines_dropped_total', dropped], () => [[{}, droppedLogLines()]]);
  collectDefaultMetrics({ register: registry });
  return {
    async render() {
      await Promise.all([parts.refresh(), ledger.refresh()]);
      return { contentType: registry.contentType, text: await registry.metrics() };
    },
  };
}

/** Shows what /health/ready says. */
function createPartMetrics(registry: Registry, health: Health): { refresh(): Promise<void> } {
  const up = new Gauge({
    name: 'sluice_part_up',
    help: 'Parts that the server needs: 1 if the part answered just now, 0 if it is away. Without Redis the queue is as well as the database.',
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

type Sample = readonly [labels: Readonly<Record<string, string | number>>, value: number];

/** Registers a metric whose values are read when the page is. */
function show(
  registry: Registry,
  kind: 'gauge' | 'counter',
  [name, help, ...labels]: readonly [name: string, help: string, ...labels: readonly string[]],
  read: () => readonly Sample[],
): void {
  const options = { name, help, labelNames: [...labels], registers: [registry] };
  if (kind === 'gauge') {
    const gauge: Gauge = new Gauge({
      ...options,
      collect: () => {
        for (const [values, value] of read()) gauge.set(values, value);
      },
    });
    return;
  }
  const counter: Counter = new Counter({
    ...options,
    collect: () => {
      counter.reset();
      for (const [values, value] of read()) counter.inc(values, value);
    },
  });
}

function showPool(registry: Registry, pool: MetricsSources['pool']): void {
  const help = 'PostgreSQL connections of this process for records and uploads, by state: busy, idle.';
  show(registry, 'gauge', ['sluice_pool_connections', help, 'state'], () => [
    [{ state: 'busy' }, pool.totalCount - pool.idleCount],
    [{ state: 'idle' }, pool.idleCount],
  ]);
  show(registry, 'gauge', ['sluice_pool_waiting', 'Callers that wait for one of those connections.'], () => [
    [{}, pool.waitingCount],
  ]);
}

function showRequests(registry: Registry, http: HttpMetrics): void {
  const help = 'Answered requests by the pattern of their route; unknown: no such route.';
  show(registry, 'counter', ['sluice_http_requests_total', help, 'method', 'route', 'status'], () =>
    [...http.routes].flatMap(({ method, pattern, byStatus }) =>
      [...byStatus].map(([status, count]): Sample => [{ method, route: pattern, status }, count]),
    ),
  );
  showDistributions(registry, {
    name: 'sluice_http_request_duration_seconds',
    help: 'Seconds from the head of a request until its answer was ready to be sent.',
    label: 'route',
    read: () => [...http.durations],
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
    help: 'Seconds that a commit window took, including the commit.',
    label: 'entity',
    read: () => entities.map(([entity, { windowSeconds }]) => [entity, windowSeconds]),
  });
  const waiting = 'Single records, or batches, that wait for a commit window.';
  show(registry, 'gauge', ['sluice_commit_window_waiting', waiting, 'entity'], () =>
    entities.map(([entity, metrics]) => [{ entity }, metrics.waiting]),
  );
  const help =
    'Single records, and items of batches, by outcome: accepted (committed), refused (the caller must change them), failed (to be sent again).';
  show(registry, 'counter', ['sluice_ingested_records_total', help, 'entity', 'outcome'], () =>
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
