import type { Logger } from 'pino';
import type { StopRequest } from '../stop-signals.ts';

/** How long a worker whose parent vanished may take; with the parent the embedded database has gone, too. */
const orphanMs = 3_000;

/** Whether another process of ours started this one, even if that one is gone already. */
export function isForked(): boolean {
  return process.connected !== undefined;
}

/**
 * Stops this process when the one that forked it is gone: the kernel closes the IPC channel then, even after
 * kill -9. What was under way is given back, or found by its lease.
 */
export function followParent(stop: StopRequest, log: Logger): void {
  if (!isForked()) return;
  const leave = (): void => {
    if (stop.signal.aborted) return;
    log.warn('the parent process is gone: stopping');
    stop.request();
    setTimeout(() => process.exit(1), orphanMs).unref();
  };
  process.once('disconnect', leave);
  // It may have gone while our modules were being loaded: the event has passed then.
  if (process.connected === false) leave();
}
