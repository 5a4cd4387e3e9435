import { setImmediate as nextTurn } from 'node:timers/promises';
import { SCAN_BYTES } from './limits.ts';

const turnMs = 20;

/** Pauses every 20 ms for other work (leases, signals, requests). */
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

/** After consecutive turns have taken this many milliseconds, no turn begins for as long again. */
const shareMs = 1;

const waiting: (() => void)[] = [];
let isTaken = false;
let startedAt = 0;
let endedAt = 0;
let busyMs = 0;

/**
 * Resolves when the caller may do work of well under a millisecond. Turns follow the order of calls
 * and use at most half of the event loop's time, so that requests are served.
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
  // By the next tick, the promise callbacks of the caller's work have run.
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
