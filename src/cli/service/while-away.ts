import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { isTransient } from '../../postgres/sqlstate.ts';

/** From the first failure on, as long as a database that is not there at all is waited for. */
const patienceMs = 60_000;
const pollMs = 250;

/**
 * Does what a process does with the database before it is of use, again while the database is away: one that answered a
 * moment ago may be restarting. Throws the last error when patience is at an end or the process is to stop, and any other at once.
 */
export async function whileAway<T>(
  { signal, log }: { readonly signal: AbortSignal; readonly log: Logger },
  work: () => Promise<T>,
): Promise<T> {
  let deadline: number | null = null;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      deadline ??= performance.now() + patienceMs;
      if (!isTransient(error) || signal.aborted || performance.now() > deadline) throw error;
      log.warn({ err: error }, 'the database went away during the start; trying again');
      await delay(pollMs, undefined, { signal }).catch(() => undefined);
    }
  }
}
