/** A histogram. Adding a value is a few additions, and allocates nothing. */
export class Distribution {
  readonly bounds: readonly number[];
  /** The number of values up to each bound and above the one before it; the last counts those above all bounds. */
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

/** `batches` are the items of batches, whatever they are. */
const entities = ['users', 'companies', 'events', 'batches'] as const;
export type RecordEntity = (typeof entities)[number];
/** `refused`: the caller must change it. `failed`: it may be sent again. */
export type RecordOutcome = 'accepted' | 'refused' | 'failed';

const recordBounds = [1, 2, 5, 10, 20, 50, 100, 200, 500];
const secondBounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

export class EntityMetrics {
  readonly windowRecords = new Distribution(recordBounds);
  readonly windowSeconds = new Distribution(secondBounds);
  readonly ended: Record<RecordOutcome, number> = { accepted: 0, refused: 0, failed: 0 };
  waiting = 0;
}

/** Counts what becomes of single records. */
export class IngestMetrics {
  readonly byEntity: Readonly<Record<RecordEntity, EntityMetrics>> = {
    users: new EntityMetrics(),
    companies: new EntityMetrics(),
    events: new EntityMetrics(),
    batches: new EntityMetrics(),
  };

  /** Counts a committed window of `records`; `seconds` passed from sending its statement to the commit. */
  windowCommitted(entity: RecordEntity, records: number, seconds: number): void {
    const { windowRecords, windowSeconds } = this.byEntity[entity];
    windowRecords.add(records);
    windowSeconds.add(seconds);
  }

  /** Counts records that begin, or cease, to wait for a statement. */
  windowWaiting(entity: RecordEntity, difference: number): void {
    this.byEntity[entity].waiting += difference;
  }

  recordsEnded(entity: RecordEntity, outcome: RecordOutcome, count: number): void {
    this.byEntity[entity].ended[outcome] += count;
  }
}

/** Seconds, from a single record on an idle machine to an upload of gigabytes. */
const bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** Counts the requests of each route by status, and how long they took. */
export class HttpMetrics {
  readonly #routes = new Map<string, RouteMetrics>();
  readonly #durations = new Map<string, Distribution>();

  /** Call it once for each route, and keep the result. `pattern` is the route as registered, never an address as it came. */
  route(method: string, pattern: string): RouteMetrics {
    const key = `${method} ${pattern}`;
    const known = this.#routes.get(key);
    if (known !== undefined) return known;
    const durations = this.#durations.get(pattern) ?? new Distribution(bounds);
    this.#durations.set(pattern, durations);
    const route = new RouteMetrics(method, pattern, durations);
    this.#routes.set(key, route);
    return route;
  }

  get routes(): Iterable<RouteMetrics> {
    return this.#routes.values();
  }

  /** Seconds by pattern. */
  get durations(): ReadonlyMap<string, Distribution> {
    return this.#durations;
  }
}

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
