/*
 * Metrics for Prometheus, health checks and the log. Counters are plain numbers until they are
 * scraped. Gauges of the ledger are read at intervals of several seconds or more.
 */

import type { Logger } from 'pino';
import type { Database } from '../postgres/database.ts';
import { addRates, type Counted } from './rate-store.ts';

const RATES_FLUSH_MS = 5_000;

/** A histogram. Adding a value takes a few additions and no memory. */
export class Distribution {
  readonly bounds: readonly number[];
  /**
   * For each bound, the number of values that are above the previous bound and at most this bound.
   * The last item counts the values above all bounds.
   */
  readonly counts: Float64Array;
  sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  add(value: number): void {
    const { bounds, counts } = this;
    let at = 0;
    while (at < bounds.length && value > (bounds[at] as number)) at++;
    counts[at] = (counts[at] as number) + 1;
    this.sum += value;
  }
}

/** Items of batches count as `batches`, not as their own kind. */
type RecordEntity = keyof Metrics['byEntity'];
/** `refused`: to be corrected by the caller. `failed`: may be sent again. */
type RecordOutcome = 'accepted' | 'refused' | 'failed';

const recordBounds = [1, 2, 5, 10, 20, 50, 100, 200, 500];
const windowBounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
/** Bounds in seconds, from a single record on an idle machine to an upload of gigabytes. */
const requestBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

export class RouteMetrics {
  readonly method: string;
  readonly pattern: string;
  readonly byStatus = new Map<number, number>();
  readonly #durations: Distribution;

  constructor(method: string, pattern: string, durations: Distribution) {
    this.method = method;
    this.pattern = pattern;
    this.#durations = durations;
  }

  ended(status: number, seconds: number): void {
    this.byStatus.set(status, (this.byStatus.get(status) ?? 0) + 1);
    this.#durations.add(seconds);
  }
}

class EntityMetrics {
  readonly windowRecords = new Distribution(recordBounds);
  readonly windowSeconds = new Distribution(windowBounds);
  readonly ended: Record<RecordOutcome, number> = { accepted: 0, refused: 0, failed: 0 };
  waiting = 0;
}

export interface MetricsPage {
  render(): Promise<{ readonly contentType: string; readonly text: string }>;
}

/**
 * Figures of single records and routes, without environments, keys or ids. Incrementing a number
 * takes 20 ns. prom-client would take a microsecond, so it is loaded at the first scrape
 * (`openPage`).
 */
export class Metrics {
  readonly byEntity = {
    users: new EntityMetrics(),
    companies: new EntityMetrics(),
    events: new EntityMetrics(),
    batches: new EntityMetrics(),
  } as const;
  readonly #routes = new Map<string, RouteMetrics>();
  /** Durations of requests in seconds, by pattern of the route. */
  readonly durations = new Map<string, Distribution>();
  readonly #openPage: (metrics: Metrics) => Promise<MetricsPage>;
  #page: Promise<MetricsPage> | undefined;

  constructor(openPage: (metrics: Metrics) => Promise<MetricsPage>) {
    this.#openPage = openPage;
  }

  /** `seconds` is the time from sending the window's statement until its commit. */
  windowCommitted(entity: RecordEntity, records: number, seconds: number): void {
    const { windowRecords, windowSeconds } = this.byEntity[entity];
    windowRecords.add(records);
    windowSeconds.add(seconds);
  }

  windowWaiting(entity: RecordEntity, difference: number): void {
    this.byEntity[entity].waiting += difference;
  }

  recordsEnded(entity: RecordEntity, outcome: RecordOutcome, count: number): void {
    this.byEntity[entity].ended[outcome] += count;
  }

  /**
   * Returns the figures of a route. Call this method once per route, with the pattern of the route
   * instead of the path of a request.
   */
  route(method: string, pattern: string): RouteMetrics {
    const key = `${method} ${pattern}`;
    const existing = this.#routes.get(key);
    if (existing !== undefined) return existing;
    const durations = this.durations.get(pattern) ?? new Distribution(requestBounds);
    this.durations.set(pattern, durations);
    const route = new RouteMetrics(method, pattern, durations);
    this.#routes.set(key, route);
    return route;
  }

  get routes(): Iterable<RouteMetrics> {
    return this.#routes.values();
  }

  /** Prometheus' text format. Takes at most about two seconds, even if the database hangs. */
  async render(): Promise<{ readonly contentType: string; readonly text: string }> {
    return (await this.page()).render();
  }

  /** The page also measures the process (event loop, memory, garbage collection). */
  page(): Promise<MetricsPage> {
    this.#page ??= this.#openPage(this);
    return this.#page;
  }
}

/**
 * Counts incoming records per minute for the console's plot. One statement stores the counts of all
 * environments every few seconds. A killed process loses the counts that are not stored yet, but
 * the ledger is complete.
 */
export class Rates {
  readonly #db: Database;
  readonly #log: Logger;
  #counts = new Map<number, Counted>();
  #timer: NodeJS.Timeout | undefined;

  constructor({ db, log }: { readonly db: Database; readonly log: Logger }) {
    this.#db = db;
    this.#log = log;
  }

  add(environmentId: number, { accepted = 0, unchanged = 0, rejected = 0 }: Partial<Counted>): void {
    const sum = this.#counts.get(environmentId) ?? { accepted: 0, unchanged: 0, rejected: 0 };
    sum.accepted += accepted;
    sum.unchanged += unchanged;
    sum.rejected += rejected;
    this.#counts.set(environmentId, sum);
    this.#timer ??= setTimeout(() => void this.flush(), RATES_FLUSH_MS).unref();
  }

  /** Stores the counts. Never throws: counts that cannot be stored are missing from the plot. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const counts = this.#counts;
    this.#counts = new Map();
    if (counts.size === 0) return;
    try {
      await addRates(this.#db, counts);
    } catch (error) {
      this.#log.debug({ err: error }, 'rates of the last seconds are missing');
    }
  }
}
