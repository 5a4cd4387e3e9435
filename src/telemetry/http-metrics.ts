import { Distribution } from './distribution.ts';

/** Seconds. From a single record on an idle machine to an upload of gigabytes. */
const bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** What a server does with each route: requests by status, and how long they took. */
export class HttpMetrics {
  readonly #routes = new Map<string, RouteMetrics>();
  readonly #durations = new Map<string, Distribution>();

  /** To be asked for once per route and kept. `pattern`: as the route is registered, never an address as it came. */
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

  /** In seconds, by pattern. */
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
