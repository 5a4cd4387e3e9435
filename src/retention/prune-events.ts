import { setTimeout as delay } from 'node:timers/promises';
import { EVENTS_LOCK_PAUSE_MS, EVENTS_LOCK_TRIES } from '../domain/limits.ts';
import { noteEventPruning, withPruningLock } from '../postgres/retention/prunings.ts';
import {
  countPast,
  findOldMonths,
  type HeldNames,
  type Month,
  readHeldNames,
} from '../postgres/retention/retained.ts';
import {
  deleteEvents,
  dropTable,
  findRetirements,
  forgetIds,
  noteDeleted,
  type Retirement,
  retireMonth,
} from '../postgres/retention/retirements.ts';
import { isLockTimeout } from '../postgres/sqlstate.ts';
import type { RetentionContext } from './context.ts';

/** What went, or would. */
export interface PrunedEvents {
  readonly events: number;
  /** Months that were dropped whole. */
  readonly months: number;
}

/**
 * Removes the events that have outlived their retention: a month that holds no others is dropped, from any other they are
 * deleted in batches. It may be killed anywhere: the next pruning goes on. What fails is written down, for `sluice doctor`,
 * and does not keep the months after it.
 */
export async function pruneEvents(context: RetentionContext): Promise<PrunedEvents> {
  const pruned = await withPruningLock(context.pool, () => pruneAll(context));
  // Whoever has the lock does it.
  return pruned ?? { events: 0, months: 0 };
}

async function pruneAll(context: RetentionContext): Promise<PrunedEvents> {
  let [events, months, problem]: [number, number, string | null] = [0, 0, null];
  const attempt = async (month: string, work: () => Promise<PrunedEvents>): Promise<void> => {
    try {
      const done = await work();
      events += done.events;
      months += done.months;
    } catch (error) {
      context.log.warn({ err: error, month }, 'events that outlived their retention could not be removed');
      problem ??= `${month.slice(0, 7)}: ${error instanceof Error ? error.message : String(error)}`;
    }
  };
  for (const retirement of await findRetirements(context.db)) {
    await attempt(retirement.month, () => finish(context, retirement));
  }
  for (const month of await findOldMonths(context.db, context.config.eventRetentionDays)) {
    await attempt(month.month, () => pruneMonth(context, month));
  }
  await noteEventPruning(context.db, problem);
  return { events, months };
}

/** What `pruneEvents` would remove now. */
export async function planEventPruning({
  db,
  config,
}: Pick<RetentionContext, 'db' | 'config'>): Promise<PrunedEvents> {
  let [events, months] = [0, 0];
  for (const month of await findOldMonths(db, config.eventRetentionDays)) {
    const held = await readHeldNames(db, month, config.eventRetentionDays);
    events += await countPast(db, month, held);
    if (isWhollyPast(held)) months++;
  }
  return { events, months };
}

async function pruneMonth(context: RetentionContext, month: Month): Promise<PrunedEvents> {
  const { eventRetentionDays: defaultDays } = context.config;
  const held = await readHeldNames(context.db, month, defaultDays);
  if (isWhollyPast(held)) {
    const retirement = await retireWithRetries(context, month);
    if (retirement !== null) return finish(context, retirement);
    // Meanwhile something came that is to stay.
  }
  const past = held.filter((each) => each.past.length > 0);
  return past.length === 0 ? { events: 0, months: 0 } : deletePast(context, month, past);
}

function isWhollyPast(held: readonly HeldNames[]): boolean {
  return held.every(({ kept }) => kept === 0);
}

/** Many short waits: while this waits for those who write events, those that come after wait for it. */
async function retireWithRetries(context: RetentionContext, month: Month): Promise<Retirement | null> {
  const { eventRetentionDays: defaultDays } = context.config;
  for (let tries = 1; ; tries++) {
    try {
      return await retireMonth(context.pool, month, { defaultDays, archives: false });
    } catch (error) {
      if (!isLockTimeout(error) || tries === EVENTS_LOCK_TRIES) throw error;
      await delay(EVENTS_LOCK_PAUSE_MS);
    }
  }
}

async function finish({ pool, db, log }: RetentionContext, retirement: Retirement): Promise<PrunedEvents> {
  const events = await forgetIds(db, retirement);
  await dropTable(pool, retirement, events);
  log.info({ month: retirement.month, events }, 'a month of events was dropped');
  return { events, months: 1 };
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
  await noteDeleted(db, month.month, events);
  log.info({ month: month.month, events }, 'events of a month were deleted');
  return { events, months: 0 };
}
