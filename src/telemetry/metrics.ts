/*
 * Telemetry: metrics for Prometheus, health checks, and the log. Counters are plain numbers until somebody
 * reads them; the gauges of `ledger-metrics.ts` are read from the database, at most every few seconds.
 */
import type { MetricsPage, MetricsSources } from './metrics-page.ts';
import { HttpMetrics, IngestMetrics } from './request-metrics.ts';

/**
 * The figures of one system. They bear no environment, key or id: whoever may read them learns nothing of a tenant.
 *
 * Counted in plain numbers, some 20 ns each; prom-client, which looks a series up by a text made of its labels, some
 * 300 ns each, is told them when somebody reads. It is not even loaded before: most commands serve nobody.
 */
export class Metrics extends IngestMetrics {
  readonly http = new HttpMetrics();
  readonly #sources: MetricsSources;
  #page: Promise<MetricsPage> | undefined;

  constructor(sources: MetricsSources) {
    super();
    this.#sources = sources;
  }

  /** Begins to watch the process too (event loop, memory, garbage collection), for one that will be scraped. */
  async watchProcess(): Promise<void> {
    await this.#openPage();
  }

  /** Prometheus' text format. Answers within some two seconds, also while the database hangs. */
  async render(): Promise<{ readonly contentType: string; readonly text: string }> {
    return (await this.#openPage()).render();
  }

  #openPage(): Promise<MetricsPage> {
    this.#page ??= import('./metrics-page.ts').then(({ createMetricsPage }) =>
      createMetricsPage(this, this.#sources),
    );
    return this.#page;
  }
}
