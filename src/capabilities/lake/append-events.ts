import { retry } from '../../base/retry.ts';
import type { RetentionContext } from '../../jobs/seam.ts';
import { databaseOn } from '../../postgres/database.ts';
import { listMonths, recordEventPruning } from '../../postgres/retention.ts';
import { inSnapshot } from '../../postgres/session.ts';
import { commitChanges, type LakeChange, Outdated, whileOutdated } from './archive-events.ts';
import { refreshLake, removeFiles, removeReplaced } from './commit.ts';
import { selectEvents, writeData } from './data-files.ts';
import { findUnfinished } from './file-store.ts';
import {
  hasEvents,
  type LakeMonth,
  listLakeMonths,
  listOpenMonths,
  openMonth,
  readMonth,
} from './month-store.ts';

/*
 * Appends new events to the lake in hot files, which contain only events that are still in the
 * database. Each month has a cursor, which is a snapshot of the database. The hot files contain
 * exactly the events visible to this snapshot. The cursor and the files are committed together, so
 * no event is missing or duplicated.
 */

/** Only one process may call this at a time. */
export async function maintainLake(context: RetentionContext): Promise<void> {
  await removeFiles(context, await findUnfinished(context.pool));
  await appendEvents(context);
  await refreshLake(context);
  await removeReplaced(context);
}

export async function appendEvents(
  context: RetentionContext,
  signal: AbortSignal = new AbortController().signal,
): Promise<void> {
  const { db, config, log } = context;
  let problem: string | null = null;
  const attempt = async (month: string, work: () => Promise<unknown>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      signal.throwIfAborted();
      log.warn({ err: error, month }, 'the lake could not be brought up to date');
      problem ??= `${month}: ${error instanceof Error ? error.message : String(error)}`;
    }
  };
  if (config.lakeEveryMs === null) {
    for (const month of await listOpenMonths(db)) await attempt(month.month, () => removeHot(context, month));
    return;
  }
  for (const table of await listMonths(db)) {
    await attempt(table.month, async () => {
      for (const month of await listLakeMonths(db, table, true))
        await attempt(month.month, () => appendMonth(context, month, signal));
    });
  }
  await recordEventPruning(db, 'append', problem);
}

async function appendMonth(context: RetentionContext, month: LakeMonth, signal: AbortSignal): Promise<void> {
  await openMonth(context.db, month);
  await retry(whileOutdated, async () => {
    const change = await inSnapshot(context, { name: 'sluice append', signal }, async (snapshot) => {
      const db = databaseOn(snapshot.client);
      const state = await readMonth(db, month);
      if (state === null || state.isRetiring) return null;
      const { cursor, isDue, isStale } = state;
      if (cursor !== null && !isDue && !(await hasEvents(db, month, cursor))) return null;
      // A month from which events were removed is rewritten completely. If a removed event was
      // inserted again, an appended file would duplicate it.
      const since = isDue || isStale ? null : cursor;
      const place = { ...month, retirementId: null };
      const hotFiles = await writeData(context, snapshot, place, selectEvents(month, { since }));
      const isReplaced = since === null;
      const nextState = { cursor: snapshot.cursor, isReplaced };
      return {
        ...unread,
        ...month,
        state,
        nextState,
        previousFiles: isReplaced ? 'replaced' : null,
        hotFiles,
      } as const;
    });
    if (change !== null && !(await commitChanges(context, [change])))
      throw new Outdated('events were erased whenever the month had been written');
  });
}

async function removeHot(context: RetentionContext, month: LakeMonth): Promise<void> {
  const state = await readMonth(context.db, month);
  // If the month has changed, nothing is committed. The next pruning tries again.
  await commitChanges(context, [
    { ...unread, ...month, state, nextState: null, previousFiles: 'replaced', hotFiles: [] },
  ]);
}

const unread = { archiveFiles: [], content: '' } satisfies Partial<LakeChange>;
