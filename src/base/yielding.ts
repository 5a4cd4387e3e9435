import { setImmediate as nextTurn } from 'node:timers/promises';
import { SCAN_BYTES } from './limits.ts';

const turnMs = 20;

/** Yields the items. Pauses every 20 ms so that other work (leases, signals, requests) can run. */
export async function* yielding<T>(items: Iterable<T>): AsyncGenerator<T, void> {
  let since = performance.now();
  for (const item of items) {
    yield item;
    if (performance.now() - since < turnMs) continue;
    await nextTurn();
    since = performance.now();
  }
}

export async function breathing(steps: Iterable<void>): Promise<void> {
  for await (const _ of yielding(steps));
}

/**
 * After turns have used this number of milliseconds, the event loop gets an equal time without
 * turns.
 */
const shareMs = 1;

const waiting: (() => void)[] = [];
let isTaken = false;
let startedAt = 0;
let endedAt = 0;
let busyMs = 0;

/**
 * Resolves when it is the caller's turn to do work that takes well under a millisecond. Turns are
 * granted in the order of the calls. All turns together use at most half of the event loop's time,
 * so the process can still serve requests.
 */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (isTaken) return;
    isTaken = true;
    if (performance.now() - endedAt > busyMs) busyMs = 0;
    setImmediate(giveTurn);
  });
}

function giveTurn(): void {
  startedAt = performance.now();
  waiting.shift()?.();
  // The turn ends at the next tick. By then, the promise callbacks of the caller's work have run.
  queueMicrotask(() => process.nextTick(endTurn));
}

function endTurn(): void {
  endedAt = performance.now();
  busyMs += endedAt - startedAt;
  isTaken = waiting.length > 0;
  if (busyMs < shareMs) {
    if (isTaken) giveTurn();
    return;
  }
  isTaken = true;
  setTimeout(resume, busyMs);
  busyMs = 0;
}

function resume(): void {
  isTaken = waiting.length > 0;
  if (isTaken) giveTurn();
}

export async function* inTurns(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const bytes of source) {
    for (let at = 0; at < bytes.length; at += SCAN_BYTES) {
      await turn();
      yield bytes.subarray(at, at + SCAN_BYTES);
    }
  }
}
