/*
 * Detects outages. After a failed request (`api.ts`), or a while without any response, the page
 * polls the service until it responds.
 */

import { type Clock, growing, pollUntil, wallClock } from '../../../base/retry.ts';
import { apiHref } from './address.ts';
import { isAwayStatus, outage, outagesOver, session, silentMs, suspectOutage } from './api.ts';

const pauseMs = growing(1_000, 8_000);
/** Time limit for a response, longer than the service's own limit for its database. */
const patienceMs = 15_000;
const quietMs = 15_000;

let isWatched = false;

/** Shows the cause after a second failure, because a restart is only a short outage. */
async function watch(): Promise<void> {
  isWatched = true;
  let failures = 0;
  const isOver = async (): Promise<boolean> => {
    const cause = await findCause();
    if (cause === null) return true;
    const current = outage.peek();
    if (++failures > 1 && current !== null && current.cause !== cause) outage.value = { ...current, cause };
    return false;
  };
  await pollUntil({ everyMs: pauseMs }, isOver, clockOf());
  isWatched = false;
  if (failures > 0) outagesOver.value++;
  outage.value = null;
}

/** Returns the cause of the outage, or `null` if the service responds. */
async function findCause(): Promise<'unreachable' | 'overloaded' | 'database' | null> {
  // An overloaded service refuses `/` at once, but may be too slow to check its database.
  const status = await statusOf('/');
  if (isAwayStatus(status)) return status === 503 ? 'overloaded' : 'unreachable';
  const report = await (await ask('/health/ready'))?.json().catch(() => null);
  if (report?.parts?.database === 'away') return 'database';
  // The database responds, but connections that serve requests may still be broken.
  return isAwayStatus(await statusOf('/v1/background_jobs?limit=1')) ? 'database' : null;
}

async function statusOf(path: string): Promise<number> {
  return (await ask(path))?.status ?? 0;
}

function ask(path: string): Promise<Response | null> {
  return fetch(apiHref(path), { signal: AbortSignal.timeout(patienceMs) }).catch(() => null);
}

/** While the page is hidden, pauses end only if the option `hidden` is true. */
export function clockOf({ hidden = false } = {}): Clock {
  return { ...wallClock, wait: (ms) => pause(ms, hidden) };
}

/** A pause also ends when the browser is online or the page is visible again. */
function pause(ms: number, isHidden: boolean): Promise<void> {
  return new Promise((resolve) => {
    const listeners = new AbortController();
    const end = (): void => {
      if (document.hidden && !isHidden) return;
      clearTimeout(timer);
      listeners.abort();
      resolve();
    };
    const timer = setTimeout(end, ms);
    addEventListener('online', end, { signal: listeners.signal });
    document.addEventListener('visibilitychange', end, { signal: listeners.signal });
  });
}

outage.subscribe((current) => {
  if (current !== null && !isWatched) void watch();
});
setInterval(() => {
  if (!document.hidden && session.peek() != null && silentMs() > quietMs) suspectOutage();
}, quietMs);
