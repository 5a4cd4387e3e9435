import { setImmediate as nextTurn } from 'node:timers/promises';

/** For how long, in milliseconds, items are handed out without a break. */
const turnMs = 20;

/** The items in turn, for work that may take long over each; between them all else gets to run: leases, signals, callers. */
export async function* yielding<T>(items: Iterable<T>): AsyncGenerator<T, void> {
  let since = performance.now();
  for (const item of items) {
    yield item;
    if (performance.now() - since < turnMs) continue;
    await nextTurn();
    since = performance.now();
  }
}

/** Runs all steps of a piece of work, yielding in the same way. */
export async function breathing(steps: Iterable<void>): Promise<void> {
  for await (const _ of yielding(steps));
}
