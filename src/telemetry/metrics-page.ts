import type pg from 'pg';
import { Counter, collectDefaultMetrics, type Histogram, Registry } from 'prom-client';
import { DELAY_RESOLUTION_MS } from '../base/limits.ts';
import { readChangeLog } from '../postgres/change-log.ts';
import { readEventRetention } from '../postgres/retention.ts';
import {
  backlogGauges,
  changeGauges,
  databaseGauges,
  type PoolCounts,
  partGauges,
  poolGauges,
  register,
  retentionGauges,
  rowGauges,
  type Sample,
  windowGauges,
} from './gauges.ts';
import { createProbe, type Health } from './health/ready.ts';
import { readBacklog, readLoadRows } from './health/store.ts';
import type { Distribution, Metrics, MetricsPage } from './metrics.ts';
import type { FigureSeam, Figures } from './seam.ts';

interface MetricsSources {
  readonly watch: pg.Pool;
  readonly health: Health;
  readonly pool: PoolCounts;
  readonly droppedLogLines: () => number;
  readonly figures: readonly FigureSeam[];
}

/** Creates a page with its own registry, because a process may contain two systems. */
export function createMetricsPage(
  counters: Metrics,
  { watch, health, pool, droppedLogLines, figures }: MetricsSources,
): MetricsPage {
  const registry = new Registry();
  const showParts = register(registry, partGauges);
  const showPool = register(registry, poolGauges);
  const showWindows = register(registry, windowGauges);
  const ledger = createLedgerMetrics(registry, watch, figures);
  showRequests(registry, counters);
  showRecords(registry, counters.byEntity);
  const help = 'Lines of the log of this process that could not be written.';
  count(registry, ['sluice_log_lines_dropped_total', help], () => [[{}, droppedLogLines()]]);
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: DELAY_RESOLUTION_MS });
  return {
    async render() {
      const [{ parts }] = await Promise.all([health.check(), ledger.refresh()]);
      showParts(parts);
      showPool(pool);
      showWindows(counters.byEntity);
      return { contentType: registry.contentType, text: await registry.metrics() };
    },
  };
}

/** The values are read when the page is rendered. */
function count(
  registry: Registry,
  [name, help, ...labels]: readonly [name: string, help: string, ...labels: readonly string[]],
  read: () => readonly Sample[],
): void {
  const counter: Counter = new Counter({
    name,
    help,
    labelNames: [...labels],
    registers: [registry],
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

/**
 * Registers histograms whose values are already counted. A histogram of prom-client cannot start
 * with counts, so it is replaced by an object with the members that the registry uses.
 */
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
/**
 * Figures are reused for this many times as long as it took to read them, so reading uses at most a
 * hundredth of a connection's time.
 */
const restPerWork = 100;

const core: readonly Figures[] = [
  { gauges: rowGauges, read: readLoadRows },
  { gauges: retentionGauges, read: readEventRetention },
  { gauges: changeGauges, read: readChangeLog },
];

/** Call `refresh` before reading. Figures that cannot be read are omitted. */
function createLedgerMetrics(registry: Registry, watch: pg.Pool, seams: readonly FigureSeam[]) {
  const showUp = register(registry, databaseGauges);
  const showBacklog = register(registry, backlogGauges);
  const others = seams.flatMap(({ backlog = [], totals = [], retention = [] }) =>
    [backlog, totals, retention].flat(),
  );
  const all = [...others, ...core].map((figures) => openFigures(registry, watch, figures));
  const askBacklog = createProbe(() => readBacklog(watch), {
    deadlineMs,
    keepMs: (_tookMs, failed) => (failed ? 0 : freshMs),
  });
  return {
    async refresh(): Promise<void> {
      const backlog = await askBacklog();
      const isUp = 'value' in backlog;
      showUp(isUp);
      showBacklog(isUp ? backlog.value : null);
      // Figures are read one after another, on one of the watch pool's two connections.
      // /health/ready needs the other connection.
      if (isUp) for (const { refresh } of all) if (!(await refresh())) break;
      for (const { show } of all) show(isUp);
    },
  };
}

function openFigures(registry: Registry, watch: pg.Pool, { gauges, read }: Figures) {
  const show = register(registry, gauges);
  let latest: object | null = null;
  const ask = createProbe(
    async () => {
      latest = await read(watch).catch(() => null);
    },
    { deadlineMs, keepMs: (tookMs) => Math.max(freshMs, tookMs * restPerWork) },
  );
  return {
    /**
     * Reads the figures. Returns false if this takes longer than a scrape waits. The page then
     * shows the previous figures.
     */
    refresh: async () => 'value' in (await ask()),
    show: (isUp: boolean) => show(isUp ? (latest as never) : null),
  };
}
