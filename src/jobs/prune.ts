import pLimit from 'p-limit';
import type { Logger } from 'pino';
import { ABANDONED_FILE_MS } from '../base/limits.ts';
import { type Poller, startPoller } from '../base/timers.ts';
import { forgetDeletions } from '../deletion/store.ts';
import { type ExportContext, exportFolder } from '../export/context.ts';
import { deleteExports, findExpired, findLeftovers, markFilesExpired } from '../export/store.ts';
import type { LoadContext } from '../load/context.ts';
import { type EndContext, expireHeldLoads } from '../load/end.ts';
import { removeAbandoned } from '../load/received.ts';
import { deleteLoads, findExpiredFiles, forgetFiles } from '../load/store.ts';
import { removeExpiredUploads } from '../load/uploads.ts';
import { maintainChangeLog } from '../postgres/change-log.ts';
import type { Maintenance } from '../tasks/job-seam.ts';
import { forgetOld } from '../tasks/job-store.ts';
import { pruneEvents } from './prune-events.ts';
import type { RetentionContext } from './seam.ts';

export interface PruneContext extends EndContext, RetentionContext {
  readonly maintenance: readonly Maintenance[];
}

/**
 * Removes expired data, for the daily task and `sluice prune`, which may run at the same time.
 * Returns how many items of each kind were removed. `capabilityCounts` has API names.
 */
export async function prune(context: PruneContext) {
  const { db, files, config, archive } = context;
  const { fileRetentionDays: fileDays, exportRetentionDays: exportDays, jobRetentionDays: jobDays } = config;
  await expireHeldLoads(context, fileDays);
  const loads = await pruneFiles({ db, files }, { fileDays, jobDays });
  const exports = await pruneExports({ db, files }, { exportDays, jobDays });
  const temporary = await sweep({ db, files, config, archive });
  const deletions = await forgetDeletions(db, jobDays);
  const capabilityCounts = await maintainAll(context);
  const events = await pruneEvents(context);
  return { ...loads, ...exports, deletions, capabilityCounts, ...events, temporary };
}

async function maintainAll(context: PruneContext): Promise<Readonly<Record<string, number>>> {
  const counts: Record<string, number> = {};
  for (const maintain of context.maintenance) Object.assign(counts, await maintain(context));
  return counts;
}

const batchSize = 500;

/**
 * Calls `batch` until it handles less than a full batch. `batch` returns the number of items that
 * it handled.
 */
async function inBatches(batch: () => Promise<number>): Promise<number> {
  let all = 0;
  let size = batchSize;
  while (size === batchSize) {
    size = await batch();
    all += size;
  }
  return all;
}

const removalsAtATime = 4;

export async function pruneFiles(
  context: Pick<LoadContext, 'db' | 'files'>,
  { fileDays, jobDays }: { readonly fileDays: number; readonly jobDays: number },
): Promise<{ files: number; jobs: number }> {
  const { db } = context;
  const files = await inBatches(() => pruneBatch(context, fileDays));
  const jobs = await deleteLoads(db, jobDays);
  await forgetOld(db);
  return { files, jobs };
}

async function pruneBatch(
  { db, files }: Pick<LoadContext, 'db' | 'files'>,
  fileDays: number,
): Promise<number> {
  const expired = await findExpiredFiles(db, fileDays, batchSize);
  const atATime = pLimit(removalsAtATime);
  await Promise.all(
    expired.map(({ loadId, ref }) =>
      atATime(async () => {
        await files.remove(ref);
        await forgetFiles(db, [loadId]);
      }),
    ),
  );
  return expired.length;
}

export async function pruneExports(
  { db, files }: Pick<ExportContext, 'db' | 'files'>,
  { exportDays, jobDays }: { readonly exportDays: number; readonly jobDays: number },
): Promise<{ exports: number; records: number }> {
  const exports = await inBatches(async () => {
    const expired = await findExpired(db, exportDays, batchSize);
    for (const { exportId, jobId } of expired) {
      // The folder may also contain files of a lost attempt.
      await files.removeFolder(exportFolder(jobId));
      await markFilesExpired(db, exportId);
    }
    return expired.length;
  });
  return { exports, records: await deleteExports(db, jobDays) };
}

const leftoversAtATime = 20;

/** Removes the files of failed and cancelled exports. */
export async function removeLeftovers({ db, files }: Pick<ExportContext, 'db' | 'files'>): Promise<void> {
  for (const { exportId, jobId } of await findLeftovers(db, leftoversAtATime)) {
    await files.removeFolder(exportFolder(jobId));
    await markFilesExpired(db, exportId);
  }
}

type Context = Pick<RetentionContext, 'db' | 'files' | 'config' | 'archive'>;

const sweepMs = 30 * 60 * 1000;

/**
 * Removes abandoned and expired data, and creates and drops partitions of the change log. Returns
 * the number of removed files. Two sweeps may run at the same time.
 */
export async function sweep({ db, files, config, archive }: Context): Promise<number> {
  const abandoned = await removeAbandoned({ db, files });
  const replaced = (await archive?.sweep({ db, files })) ?? 0;
  const uploads = await removeExpiredUploads({ db, files });
  const temporary = await files.sweepTemporary(ABANDONED_FILE_MS);
  await maintainChangeLog(db, config.changesDays);
  return abandoned + replaced + uploads + temporary;
}

/** Sweeps at once, then every half hour. The next sweep retries failed removals. */
export function startSweeping({ log, ...context }: Context & { readonly log: Logger }): Poller {
  return startPoller(sweepMs, async () => {
    try {
      const removed = await sweep(context);
      if (removed > 0) log.info({ removed }, 'files of killed processes removed');
    } catch (error) {
      log.warn({ err: error }, 'the sweep did not complete; the next one tries again');
    }
  });
}
