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

/** For how long, in milliseconds, work in turns runs before everything else gets as much time. */
const shareMs = 1;

interface Work {
  readonly steps: Iterator<void>;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

const waiting: Work[] = [];
let hasTurn = false;

/**
 * Runs all steps of a piece of work, each of which takes well under a millisecond. Everybody's pieces together take no more than half
 * of the event loop's time, one after another, so that requests are answered however many files are being received.
 */
export function inTurns(steps: Iterable<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    waiting.push({ steps: steps[Symbol.iterator](), resolve, reject });
    if (!hasTurn) setImmediate(takeTurn);
    hasTurn = true;
  });
}

function takeTurn(): void {
  const since = performance.now();
  let busyMs = 0;
  for (let work = waiting.shift(); work !== undefined; work = waiting.shift()) {
    if (!isDone(work)) waiting.push(work);
    busyMs = performance.now() - since;
    if (busyMs >= shareMs) break;
  }
  hasTurn = waiting.length > 0 || busyMs >= shareMs;
  if (hasTurn) setTimeout(takeTurn, busyMs);
}

/** Takes one step; returns whether it was the last. */
function isDone({ steps, resolve, reject }: Work): boolean {
  try {
    if (steps.next().done !== true) return false;
    resolve();
  } catch (error) {
    reject(error);
  }
  return true;
}
