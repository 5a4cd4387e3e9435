import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { isFull, readDisk } from '../../files/disk.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../postgres/embedded/start.ts';

const shortestPauseMs = 200;
const longestPauseMs = 10_000;

export interface EmbeddedGuard {
  /** Ends the server and the guard. */
  stop(): Promise<void>;
}

export interface GuardOptions {
  /** The data directory of the system, not of the server. */
  readonly dataDir: string;
  readonly log: Logger;
  /** The server runs again, but under another URL, because its port was taken meanwhile. */
  readonly onMoved: (url: string) => Promise<void>;
}

/**
 * Starts the embedded server again whenever it ends unasked, on the same port, so that every pool finds it again by
 * itself. Loads under way are not harmed: what had committed is there, the rest is done again.
 */
export function guardEmbedded(first: EmbeddedPostgres, options: GuardOptions): EmbeddedGuard {
  const stopping = new AbortController();
  let server = first;
  const watching = (async () => {
    while (!stopping.signal.aborted) {
      await server.exited;
      if (stopping.signal.aborted) return;
      const next = await startAgain(server.url, options, stopping.signal);
      if (next === null) return;
      const moved = next.url !== server.url;
      server = next;
      if (moved)
        await options
          .onMoved(next.url)
          .catch((err: unknown) => options.log.error({ err }, 'moving to the new port failed'));
    }
  })();
  return {
    async stop() {
      stopping.abort();
      await server.stop();
      await watching;
      // A restart that was under way when we were asked to stop.
      await server.stop();
    },
  };
}

async function startAgain(
  lastUrl: string,
  { dataDir, log }: GuardOptions,
  signal: AbortSignal,
): Promise<EmbeddedPostgres | null> {
  const port = Number(new URL(lastUrl).port);
  let pauseMs = shortestPauseMs;
  while (!signal.aborted) {
    try {
      return await startEmbeddedPostgres({ dataDir: join(dataDir, 'postgres'), log, port });
    } catch (error) {
      const hasRoom = await readDisk(dataDir).then(
        (disk) => !isFull(disk),
        () => true,
      );
      if (hasRoom)
        log.error({ err: error, retry_in_ms: pauseMs }, 'embedded Postgres could not be started again');
      else
        log.error({ retry_in_ms: pauseMs }, `embedded Postgres has no room left on the disk of ${dataDir}`);
    }
    await delay(pauseMs, undefined, { signal }).catch(() => undefined);
    pauseMs = Math.min(pauseMs * 2, longestPauseMs);
  }
  return null;
}
