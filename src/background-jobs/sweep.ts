import type pg from 'pg';
import type { Logger } from 'pino';
import { ABANDONED_FILE_MS } from '../domain/limits.ts';
import type { FileStore } from '../files/file-store.ts';
import { removeAbandoned } from '../load/received-files.ts';
import type { Database } from '../postgres/database.ts';
import { removeReplaced } from '../retention/prune-events.ts';
import { type Poller, startPoller } from '../tasks/poller.ts';

interface Context {
  readonly pool: pg.Pool;
  readonly db: Database;
  readonly files: FileStore;
}

const sweepMs = 30 * 60 * 1000;

/** Removes what processes that were killed have left in the store; how many files that was. Twice at once does no harm. */
export async function sweep({ pool, db, files }: Context): Promise<number> {
  const abandoned = await removeAbandoned({ db, files });
  const replaced = await removeReplaced({ pool, db, files });
  return abandoned + replaced + (await files.sweepTemporary(ABANDONED_FILE_MS));
}

/** Sweeps at once and then every half hour; what fails is done by the next round. */
export function startSweeping({ log, ...context }: Context & { readonly log: Logger }): Poller {
  return startPoller(sweepMs, async () => {
    try {
      const removed = await sweep(context);
      if (removed > 0) log.info({ removed }, 'files of killed processes removed');
    } catch (error) {
      log.warn(
        { err: error },
        'what killed processes have left could not be removed; the next round tries again',
      );
    }
  });
}
