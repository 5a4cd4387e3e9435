import { MAX_ARCHIVE_TRIES } from '../domain/limits.ts';
import { databaseOn } from '../postgres/database.ts';
import { inSnapshot } from '../postgres/session.ts';
import {
  findMirrored,
  hasEvents,
  type LakeMonth,
  listLakeMonths,
  openMonth,
  readMonth,
} from '../postgres/stores/lake-months.ts';
import { listMonths, recordEventPruning } from '../postgres/stores/retention.ts';
import { commitChanges, type LakeChange, type RetentionContext } from './archive-events.ts';
import { selectEvents, writeData } from './data-files.ts';
import { mirrorProfiles, removeProfiles } from './mirror-profiles.ts';

/*
 * LAKE=mirror: the lake holds events that are in the database too, in hot files. Of each month of an
 * environment the ledger has the cursor that its files show: what came since is appended, or the whole month written again
 * (`readMonth` says when), and the cursor moves in the transaction that commits the files. So nothing is twice or missing, and whoever is
 * killed leaves unfinished files at most. When the month leaves the database, `archiveEvents` compares.
 */

/** Brings the lake up to date with the database; without LAKE=mirror, takes hot files and profiles out of it. What fails is written down. */
export async function mirrorEvents(
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
  if (config.lake !== 'mirror') {
    for (const month of await findMirrored(db)) await attempt(month.month, () => removeHot(context, month));
    await attempt('profiles', () => removeProfiles(context));
    return;
  }
  for (const table of await listMonths(db)) {
    await attempt(table.month, async () => {
      for (const month of await listLakeMonths(db, table, true))
        await attempt(month.month, () => mirrorMonth(context, month, signal));
    });
  }
  await attempt('profiles', () => mirrorProfiles(context, signal));
  await recordEventPruning(db, 'mirror', problem);
}

async function mirrorMonth(context: RetentionContext, month: LakeMonth, signal: AbortSignal): Promise<void> {
  await openMonth(context.db, month);
  for (let tries = 0; tries < MAX_ARCHIVE_TRIES; tries++) {
    const change = await inSnapshot(context, { name: 'sluice mirror', signal }, async (snapshot) => {
      const db = databaseOn(snapshot.client);
      const state = await readMonth(db, month);
      if (state === null || state.isRetiring) return null;
      const since = state.isDue ? null : state.cursor;
      if (since !== null && !(await hasEvents(db, month, since))) return null;
      const place = { ...month, retirementId: null };
      const hot = await writeData(context, snapshot, place, selectEvents(month, { since }));
      const isWhole = since === null;
      const next = { cursor: snapshot.cursor, isWhole };
      return {
        ...month,
        state,
        next,
        before: isWhole ? 'replaced' : null,
        hot,
        cold: [],
      } satisfies LakeChange;
    });
    if (change === null || (await commitChanges(context, [change]))) return;
  }
  throw new Error('events were erased whenever the month had been written');
}

async function removeHot(context: RetentionContext, month: LakeMonth): Promise<void> {
  const state = await readMonth(context.db, month);
  // If it has changed meanwhile, the next pruning does it.
  await commitChanges(context, [{ ...month, state, next: null, before: 'replaced', hot: [], cold: [] }]);
}
