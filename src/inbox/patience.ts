const firstMs = 1_000;
const longestMs = 60_000;

/** After each failure in a row the next try waits twice as long, up to a minute. */
export class Patience<Key> {
  readonly #failures = new Map<Key, { readonly count: number; readonly untilMs: number }>();

  /** Whether the next try is due. */
  isOver(key: Key): boolean {
    return (this.#failures.get(key)?.untilMs ?? 0) <= performance.now();
  }

  /** Milliseconds until the next try. */
  failed(key: Key): number {
    const count = (this.#failures.get(key)?.count ?? 0) + 1;
    const waitMs = Math.min(firstMs * 2 ** (count - 1), longestMs);
    this.#failures.set(key, { count, untilMs: performance.now() + waitMs });
    return waitMs;
  }

  succeeded(key: Key): void {
    this.#failures.delete(key);
  }
}
