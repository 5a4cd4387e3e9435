import { Counter, collectDefaultMetrics, Gauge, type Histogram, Registry } from 'prom-client';
import { createLedgerMetrics, type LedgerReader } from './ledger-metrics.ts';
import type { Distribution, EntityMetrics, HttpMetrics, IngestMetrics } from './request-metrics.ts';

export interface MetricsPage {
  render(): Promise<{ readonly contentType: string; readonly text: string }>;
}

/** What is read when a system is scraped. On a registry of its own: two systems can live in one process. */
export function createMetricsPage(
  counted: IngestMetrics & { readonly http: HttpMetrics },
  reader: LedgerReader,
  droppedLogLines: () => number,
): MetricsPage {
  const registry = new Registry();
  const ledger = createLedgerMetrics(registry, reader);
  showRequests(registry, counted.http);
  showRecords(registry, Object.entries(counted.byEntity));
  showLog(registry, droppedLogLines);
  collectDefaultMetrics({ register: registry });
  return {
    async render() {
      await ledger.refresh();
      return { contentType: registry.contentType, text: await registry.metrics() };
    },
  };
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
