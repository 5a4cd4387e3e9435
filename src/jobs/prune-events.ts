/**
 * Removes expired events. `src/postgres/retirements.ts` has the steps by which a month is removed.
 * The process may be killed after any step.
 */

import { Fault } from '../base/errors.ts';
import { withLockTries } from '../postgres/database.ts';
import {
  findOldMonths,
  type HeldNames,
  type Month,
  readHeldNames,
  recordEventPruning,
  withPruningLock,
} from '../postgres/retention.ts';
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
} from '../postgres/retirements.ts';
import type { RetentionContext } from './seam.ts';

export interface PrunedEvents {
  readonly events: number;
  readonly months: number;
  readonly archived: number;
  /** Reason why expired events remain, or `null`. */
  readonly problem: string | null;
}

/**
 * Drops months in which all events have expired, and deletes the expired events of other months in
 * batches. After a crash, the next pruning continues. `sluice status` shows a failure.
 */
export async function pruneEvents(context: RetentionContext): Promise<PrunedEvents> {
  const pruned = await withPruningLock(context.pool, () => pruneAll(context));
  // If another process has the lock, that process removes the events.
  return pruned ?? none;
}

async function pruneAll(context: RetentionContext): Promise<PrunedEvents> {
  let pruned = none;
  let problem: string | null = null;
  const attempt = async (month: string, work: () => Promise<PrunedEvents>): Promise<void> => {
    try {
      pruned = sum(pruned, await work());
    } catch (error) {
      context.log.warn({ err: error, month }, 'events that outlived their retention could not be removed');
      problem ??= `${month}: ${error instanceof Error ? error.message : String(error)}`;
    }
  };
  const { archive } = context;
  if (archive !== null) await attempt(archive.label, () => archive.maintain(context).then(() => none));
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
  const { eventRetentionDays: defaultDays } = context.config;
  const archives = context.archive?.isOn(context.config) === true;
  const heldNames = await readHeldNames(context.db, month, defaultDays);
  if (heldNames.every(({ kept }) => kept === 0)) {
    const retirement = await withLockTries(() => retireMonth(context.pool, month, { defaultDays, archives }));
    if (retirement !== null) return finish(context, retirement);
    // The month cannot be dropped, because new events that must be kept have arrived.
  }
  const past = heldNames.filter((each) => each.past.length > 0);
  if (past.length === 0) return none;
  return archives ? movePast(context, month, past) : deletePast(context, month, past);
}

async function finish(context: RetentionContext, retirement: Retirement): Promise<PrunedEvents> {
  const { month, archives, state, isWhole } = retirement;
  const mustArchive = archives && state === 'retired';
  if (mustArchive && context.archive === null) throw new Fault('nothing keeps events that are to be kept');
  if (mustArchive) await context.archive?.archive(context, retirement);
  const events = await forgetIds(context.db, retirement);
  const archived = mustArchive ? events : 0;
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
    while ((await moveEvents(context.pool, month, names, retirement)) > 0);
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
    for (let removed = 1; removed > 0; events += removed) removed = await deleteEvents(db, month, names);
  }
  await recordDeleted(db, month.month, events);
  log.info({ month: month.month, events }, 'events of a month were removed');
  return { ...none, events };
}

const none: PrunedEvents = { events: 0, months: 0, archived: 0, problem: null };

function sum(a: PrunedEvents, b: PrunedEvents): PrunedEvents {
  return {
    events: a.events + b.events,
    months: a.months + b.months,
    archived: a.archived + b.archived,
    problem: a.problem ?? b.problem,
  };
}
