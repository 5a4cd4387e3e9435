/*
 * The lake contains an Iceberg table of the events of each environment. Other query engines can
 * read these tables. `append-events.ts` adds new events, and `archive-events.ts` moves events whose
 * retention has ended. Every snapshot contains each event exactly once.
 */
import type { Capability } from '../../capability.ts';
import type { Attempt } from '../../deletion/seam.ts';
import { countErased, readIds } from '../../deletion/store.ts';
import { maintainLake } from './append-events.ts';
import { archiveEvents } from './archive-events.ts';
import { commitLake, removeReplaced } from './commit.ts';
import { checkLength, checkStored, rewriteData } from './data-files.ts';
import {
  abandonUnfinished,
  type DataFile,
  findHolders,
  findMovedUntil,
  listData,
  replaceData,
  storeData,
  type WrittenFile,
} from './file-store.ts';
import { bitsOf } from './id-filter.ts';
import { recordErasure } from './month-store.ts';
import { columnList } from './table-store.ts';

export const lake: Capability = {
  name: 'lake',
  archive: {
    label: 'the lake',
    isOn: ({ lakeEveryMs }) => lakeEveryMs !== null,
    maintain: maintainLake,
    archive: archiveEvents,
    sweep: removeReplaced,
  },
  deletions: {
    eraseFiles,
    // After a failed deletion, events that are still in the database may be missing from the lake.
    failed: (db, environmentId) => recordErasure(db, environmentId, null, { isStale: true }),
    findMovedUntil,
  },
  definitions: async () => columnList,
  figures: async () => (await import('./figures.ts')).figures,
  work: async () => (await import('./work.ts')).work,
};

export async function eraseFiles(attempt: Attempt): Promise<() => Promise<void>> {
  const seen = await eraseArchived(attempt);
  return async () => {
    const { context, deletion } = attempt;
    // Since the first pass, archiving may have moved events to new files, so these files are
    // searched, too. Files that are still being written cannot be searched, so they are abandoned
    // first.
    await abandonUnfinished(context.db, deletion.environmentId);
    await eraseArchived(attempt, seen);
    await removeReplaced(context);
  };
}

/**
 * Erases the deleted ids from all files except `seen`. Deleted users lose their events. Deleted
 * companies are removed from events. Commits all new files together. Counts only events that are
 * not also in the database. Returns the ids of all files.
 */
async function eraseArchived(
  attempt: Attempt,
  seen: ReadonlySet<number> | null = null,
): Promise<ReadonlySet<number>> {
  const { context, deletion, step, throwIfAborted } = attempt;
  const { deletionId, environmentId, entity } = deletion;
  const all = await listData(context.db, environmentId);
  const data = all.filter(({ fileId }) => seen?.has(fileId) !== true);
  const ids = new Set(data.length === 0 ? [] : await readIds(context.db, deletionId));
  const holders = await findHolders(context.db, data, bitsOf(entity, ids));
  const erased: { readonly file: DataFile; readonly by: WrittenFile | null }[] = [];
  const counts = new Map<string, number>();
  for (const file of data) {
    if (!holders.has(file.fileId)) continue;
    const place = { environmentId, month: file.month, retirementId: null };
    const rewritten = await rewriteData(context, file, place, { entity, ids, throwIfAborted });
    if (rewritten === null) continue;
    const { file: by } = rewritten;
    if (by !== null) await (file.isHot ? checkLength : checkStored)(context.files, by);
    erased.push({ file, by });
    for (const [id, count] of file.isHot ? [] : rewritten.counts)
      counts.set(id, (counts.get(id) ?? 0) + count);
  }
  if (erased.length > 0) {
    await step(async (db) => {
      const months = erased.map(({ file }) => file.month);
      await recordErasure(db, environmentId, months, { isStale: seen !== null });
      for (const { file, by } of erased) {
        await replaceData(db, file);
        if (by !== null) await storeData(db, [by], file.isHot);
      }
      await commitLake(context, db, environmentId, months);
      return { events: await countErased(db, deletionId, counts) };
    });
  }
  return new Set(all.map(({ fileId }) => fileId));
}
