/**
 * Retention: removes the events that have outlived it, into the lake if they are to be kept as files. `pruneEvents` is where
 * it begins; a month goes in the steps that src/postgres/stores/retirements.ts draws, and each of them may be the last of a
 * killed process.
 */

import type { FileRef } from '../files/file-store.ts';
import { type LakeContext, refreshLake } from '../lake/commit.ts';
import { withLockTries } from '../postgres/database.ts';
import { findReplaced, findUnfinished, forgetFile } from '../postgres/stores/lake-files.ts';
import {
  findOldMonths,
  type HeldNames,
  type Month,
  readHeldNames,
  recordEventPruning,
  withPruningLock,
} from '../postgres/stores/retention.ts';
import {
  deleteEvents,
  dropTable,
  findRetirements,
  forgetIds,
  moveEvents,
  openRetirement,
  type Retirement,
  recordDeleted,
  retireMonth,
} from '../postgres/stores/retirements.ts';
import { appendEvents } from './append-events.ts';
import { archiveEvents, type RetentionContext } from './archive-events.ts';

export interface PrunedEvents {
  readonly events: number;
  readonly months: number;
  readonly archived: number;
  /** The reason why events that should have been removed are still there; `null` if none are. */
  readonly problem: string | null;
}

/**
 * Removes the events that have outlived their retention: a month that holds no others is dropped, from any other they are
 * deleted in batches. It may be killed anywhere: the next pruning goes on. What fails is written down, for `sluice status`,
 * and does not keep the months after it.
 */
export async function pruneEvents(context: RetentionContext): Promise<PrunedEvents> {
  const pruned = await withPruningLock(context.pool, () => pruneAll(context));
  // Whoever has the lock does it.
  return pruned ?? none;
}

async function pruneAll(context: RetentionContext): Promise<PrunedEvents> {
  let [pruned, problem]: [PrunedEvents, string | null] = [none, null];
  const attempt = async (month: string, work: () => Promise<PrunedEvents>): Promise<void> => {
    try {
      pruned = sum(pruned, await work());
    } catch (error) {
      context.log.warn({ err: error, month }, 'events that outlived their retention could not be removed');
      problem ??= `${month}: ${error instanceof Error ? error.message : String(error)}`;
    }
  };
  await attempt('the lake', async () => {
    // Killed processes left these. We hold the lock, so nobody else moves events now.
    await removeFiles(context, await findUnfinished(context.pool));
    await appendEvents(context);
    await refreshLake(context);
    await removeReplaced(context);
    return none;
  });
  for (const retirement of await findRetirements(context.db)) {
    await attempt(retirement.month, () => finish(context, retirement));
  }
  for (const month of await findOldMonths(context.db, context.config.eventRetentionDays)) {
    await attempt(month.month, () => pruneMonth(context, month));
  }
  await recordEventPruning(context.db, 'prune', problem);
  return { ...pruned, problem };
}

async function pruneMonth(context: RetentionContext, month: Month): Promise<PrunedEvents> {
  const { eventRetentionDays: defaultDays, lakeEveryMs } = context.config;
  const held = await readHeldNames(context.db, month, defaultDays);
  if (held.every(({ kept }) => kept === 0)) {
    const retirement = await withLockTries(() =>
      retireMonth(context.pool, month, { defaultDays, archives: lakeEveryMs !== null }),
    );
    if (retirement !== null) return finish(context, retirement);
    // Meanwhile something came that is to stay.
  }
  const past = held.filter((each) => each.past.length > 0);
  if (past.length === 0) return none;
  return lakeEveryMs === null ? deletePast(context, month, past) : movePast(context, month, past);
}

/** Archives what a retired table holds, if that is to be, forgets the ids, drops it. */
async function finish(context: RetentionContext, retirement: Retirement): Promise<PrunedEvents> {
  const { month, archives, state, isWhole } = retirement;
  const isToArchive = archives && state === 'retired';
  if (isToArchive) await archiveEvents(context, retirement);
  const events = await forgetIds(context.db, retirement);
  const archived = isToArchive ? events : 0;
  await dropTable(context.pool, retirement, events);
  context.log.info({ month, events, archived, is_whole: isWhole }, 'events of a month were removed');
  return { ...none, events, months: isWhole ? 1 : 0, archived };
}

async function movePast(
  context: RetentionContext,
  month: Month,
  past: readonly HeldNames[],
): Promise<PrunedEvents> {
  const retirement = await openRetirement(context.pool, month.month);
  for (const names of past) {
    for (let left = true; left; ) left = (await moveEvents(context.pool, month, names, retirement)) > 0;
  }
  return finish(context, retirement);
}

async function deletePast(
  { db, log }: RetentionContext,
  month: Month,
  past: readonly HeldNames[],
): Promise<PrunedEvents> {
  let events = 0;
  for (const names of past) {
    for (let left = true; left; ) {
      const removed = await deleteEvents(db, month, names);
      events += removed;
      left = removed > 0;
    }
  }
  await recordDeleted(db, month.month, events);
  log.info({ month: month.month, events }, 'events of a month were removed');
  return { ...none, events };
}

async function removeFiles(
  { db, files }: Pick<LakeContext, 'db' | 'files'>,
  refs: readonly FileRef[],
): Promise<void> {
  for (const ref of refs) {
    await files.remove(ref);
    await forgetFile(db, ref);
  }
}

const none: PrunedEvents = { events: 0, months: 0, archived: 0, problem: null };

function sum(a: PrunedEvents, b: PrunedEvents): PrunedEvents {
  const [events, months] = [a.events + b.events, a.months + b.months];
  return { events, months, archived: a.archived + b.archived, problem: a.problem ?? b.problem };
}

/** Removes files that no snapshot names any more. Returns how many. */
export async function removeReplaced(system: Pick<LakeContext, 'db' | 'files'>): Promise<number> {
  const replaced = await findReplaced(system.db);
  await removeFiles(system, replaced);
  return replaced.length;
}
