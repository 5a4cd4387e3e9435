/*
 * Telemetry: metrics for Prometheus, health checks, and the log. Counters are plain numbers until a scrape
 * reads them; the gauges of `ledger-metrics.ts` are read from the database, at most every few seconds.
 */
import type { MetricsPage, MetricsSources } from './metrics-page.ts';
import { HttpMetrics, IngestMetrics } from './request-metrics.ts';

/**
 * The figures of one system. They have no environment, key or id, so that a reader learns nothing of a tenant.
 *
 * Counting in plain numbers takes some 20 ns; prom-client, which looks a series up by the text of its labels, takes some 300 ns. It
 * is loaded by the first scrape: most commands serve nobody.
 */
export class Metrics extends IngestMetrics {
  readonly http = new HttpMetrics();
  readonly #sources: MetricsSources;
  #page: Promise<MetricsPage> | undefined;

  constructor(sources: MetricsSources) {
    super();
    this.#sources = sources;
  }

  /** Begins to watch the process too (event loop, memory, garbage collection). */
  async watchProcess(): Promise<void> {
    await this.#openPage();
  }

  /** Renders Prometheus' text format within some two seconds, also while the database hangs. */
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
