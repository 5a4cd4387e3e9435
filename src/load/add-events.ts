import { byEventKind, type EventKind } from '../domain/entity.ts';
import { keepsPlan, noOutcomes, type Outcomes } from '../domain/load.ts';
import { inSavepoint, type Transaction } from '../postgres/database.ts';
import { isDeadlock, isUniqueViolation } from '../postgres/sqlstate.ts';
import type { LoadMemory } from './context.ts';
import type { EventBuffer, RecordFilter } from './map/event-buffer.ts';
import { type AddedEvents, classifyEvents, copyEvents, mergeEvents } from './merge/add-events.ts';
import type { LoadSource } from './running-store.ts';

export type EventOutcomes = Readonly<Record<EventKind, Outcomes>>;

/**
 * Adds events with COPY, unless the last chunk contained events that already exist. COPY fails if
 * an event exists. That costs time but does no harm, because the events are then merged.
 */
export async function addEvents(
  transaction: Transaction,
  source: LoadSource,
  chunkNo: number,
  events: EventBuffer,
  memory: LoadMemory,
): Promise<EventOutcomes> {
  if (!source.dryRun && memory.events !== 'known') {
    const added = await tryCopying(transaction, source, chunkNo, events);
    if (added !== null) return added;
  }
  const outcomes = await addMissingEvents(transaction, source, chunkNo, events);
  memory.events = Object.values(outcomes).some(({ unchanged }) => unchanged > 0) ? 'known' : 'new';
  return outcomes;
}

/** If one of the events exists, adds none and returns `null`. */
async function tryCopying(
  transaction: Transaction,
  source: LoadSource,
  chunkNo: number,
  events: EventBuffer,
): Promise<EventOutcomes | null> {
  const scope = scopeOf(source, chunkNo);
  const copy = (): Promise<void> =>
    copyEvents(transaction, scope, {
      text: events.text(),
      ids: events.idText(),
      keyHashes: scope.keepKeys ? events.keyHashes() : null,
    });
  // A deadlock means that another chunk is adding the same events in a different order.
  const isThere = (error: Error): boolean => isUniqueViolation(error) || isDeadlock(error);
  const copied = await inSavepoint(transaction.client, copy, isThere);
  return 'error' in copied ? null : outcomesOf(events);
}

/** Adds the events of the records selected by `includes`. Skips events that already exist. */
export async function addMissingEvents(
  transaction: Transaction,
  source: LoadSource,
  chunkNo: number,
  events: EventBuffer,
  includes?: RecordFilter,
): Promise<EventOutcomes> {
  const scope = scopeOf(source, chunkNo);
  const batch = {
    text: events.text(includes),
    ids: events.hashedIdText(includes),
    contentHashes: scope.keepKeys ? events.contentHashes(includes) : null,
  };
  const added = source.dryRun
    ? await classifyEvents(transaction, scope, batch, keepsPlan(source.pass) ? 1 : 0)
    : await mergeEvents(transaction, scope, batch);
  return outcomesOf(events, includes, added);
}

function scopeOf({ environmentId, loadId, chunkCount }: LoadSource, chunkNo: number) {
  return { environmentId, loadId, chunkNo, keepKeys: chunkCount > 1 };
}

/**
 * Counts the outcomes of events by kind. If `added` is missing, all distinct events are counted as
 * inserted.
 */
function outcomesOf(events: EventBuffer, includes?: RecordFilter, added?: AddedEvents): EventOutcomes {
  const counts = events.countByKind(includes);
  const outcome = (kind: EventKind): Outcomes => {
    const { rows, repeated } = counts[kind];
    const inserted = added?.[kind] ?? rows - repeated;
    return { ...noOutcomes, inserted, unchanged: rows - repeated - inserted, superseded: repeated };
  };
  return byEventKind(outcome);
}
