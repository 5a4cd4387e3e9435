/*
 * The watch over an outage. A request that fails raises a suspicion (`api.ts`); then the service is asked until it answers again.
 * For a page that asks nothing the service is asked now and then, so that the page knows too.
 */

import { type Clock, growing, pollUntil, wallClock } from '../../../base/retry.ts';
import { apiHref } from './address.ts';
import { isAwayStatus, outage, outagesOver, session, silentMs, suspectOutage } from './api.ts';

const pauseMs = growing(1_000, 8_000);
/** Longer than the service itself waits for its database. */
const patienceMs = 15_000;
const quietMs = 15_000;

let isWatched = false;

/** Asks until the service answers. The cause is shown once a second question has failed: a restart may take less. */
async function watch(): Promise<void> {
  isWatched = true;
  let failures = 0;
  const isOver = async (): Promise<boolean> => {
    const cause = await findCause();
    if (cause === null) return true;
    const found = outage.peek();
    if (++failures > 1 && found !== null && found.cause !== cause) outage.value = { ...found, cause };
    return false;
  };
  await pollUntil({ everyMs: pauseMs }, isOver, clockOf());
  isWatched = false;
  if (failures > 0) outagesOver.value++;
  outage.value = null;
}

/** Returns why the service cannot answer, or `null` if it can. */
async function findCause(): Promise<'unreachable' | 'overloaded' | 'database' | null> {
  // This first: an overloaded service refuses it, and may lack the time to hear its database.
  const status = await statusOf('/');
  if (isAwayStatus(status)) return status === 503 ? 'overloaded' : 'unreachable';
  const report = await (await ask('/health/ready'))?.json().catch(() => null);
  if (report?.parts?.database === 'away') return 'database';
  // The database answers, but the connections for requests may still be broken.
  return isAwayStatus(await statusOf('/v1/background_jobs?limit=1')) ? 'database' : null;
}

async function statusOf(path: string): Promise<number> {
  return (await ask(path))?.status ?? 0;
}

function ask(path: string): Promise<Response | null> {
  return fetch(apiHref(path), { signal: AbortSignal.timeout(patienceMs) }).catch(() => null);
}

/** The clock of a page. Unless it runs `hidden`, a page that nobody looks at waits until somebody does. */
export function clockOf({ hidden = false } = {}): Clock {
  return { ...wallClock, wait: (ms) => pause(ms, hidden) };
}

/** Ends at once when the browser has a network again. */
function pause(ms: number, isHidden: boolean): Promise<void> {
  return new Promise((resolve) => {
    const ended = new AbortController();
    const end = (): void => {
      if (document.hidden && !isHidden) return;
      clearTimeout(timer);
      ended.abort();
      resolve();
    };
    const timer = setTimeout(end, ms);
    addEventListener('online', end, { signal: ended.signal });
    document.addEventListener('visibilitychange', end, { signal: ended.signal });
  });
}

outage.subscribe((found) => {
  if (found !== null && !isWatched) void watch();
});
setInterval(() => {
  if (!document.hidden && session.peek() != null && silentMs() > quietMs) suspectOutage();
}, quietMs);
