/*
 * The events of a user, newest first: those of the database, and those that have moved to the lake, merged page by page.
 */
import { instantOfMicros } from '../domain/instant.ts';
import { MAX_PAGE_LAKE_FILES } from '../domain/limits.ts';
import { microsOf } from '../export/filter.ts';
import { filterOf, findHits } from '../export/write/lake-hits.ts';
import type { FileStore } from '../files/file-store.ts';
import { createFilterTest } from '../lake/id-filter.ts';
import { mayHoldAny, readGroups } from '../lake/read-events.ts';
import type { LakeEvent } from '../lake/row-group.ts';
import { type Database, inTransaction } from '../postgres/database.ts';
import type { Reader } from '../postgres/pool.ts';
import { findAllIds } from '../postgres/stores/aliases.ts';
import {
  type EventPosition,
  type ReadEvent,
  readUserEvents,
  type UserEventsQuery,
} from '../postgres/stores/events.ts';
import { findData, keepFiles, readFilter } from '../postgres/stores/lake.ts';

interface Sources {
  readonly reader: Reader;
  readonly files: FileStore;
}

interface Page {
  readonly events: readonly ReadEvent[];
  /** Where the next page begins; null: this is the last. */
  readonly next: EventPosition | null;
}

/** Reads a page. If it would take more files of the lake than MAX_PAGE_LAKE_FILES, it may be short or empty and not the last. */
export async function readUserHistory(
  { reader, files }: Sources,
  environmentId: number,
  query: UserEventsQuery,
): Promise<Page> {
  // The database first: what moves meanwhile is found twice, and not missed.
  const { events, more } = await readUserEvents(reader, environmentId, query);
  const last = more ? (events.at(-1) ?? null) : null;
  const range = { from: last?.at ?? query.from, to: query.to };
  if ((await findData(reader.db, environmentId, range)).length === 0) return { events, next: last };
  const { found, stop } = await inTransaction(reader.pool, async ({ db }) => {
    await keepFiles(db);
    return readLake({ db, files }, environmentId, query, last);
  });
  const held = new Set(events.map(keyOf));
  const all = [...events, ...found.filter((event) => !held.has(keyOf(event)))]
    .filter(({ at }) => stop === null || at > stop)
    .sort(newestFirst);
  const page = fitting(all, query);
  if (page.length < all.length) return { events: page, next: page.at(-1) ?? null };
  return { events: page, next: stop === null ? last : { at: instantOfMicros(microsOf(stop) + 1), id: '' } };
}

const keyOf = ({ at, id }: EventPosition): string => `${at} ${id}`;

function newestFirst(a: EventPosition, b: EventPosition): number {
  if (a.at !== b.at) return a.at < b.at ? 1 : -1;
  return Buffer.compare(Buffer.from(b.id), Buffer.from(a.id));
}

/** Returns the first events, as many as a page takes. */
function fitting(events: readonly ReadEvent[], { limit, bytes }: UserEventsQuery): ReadEvent[] {
  let length = 0;
  return events.slice(0, limit).filter(({ json }) => {
    const fits = length < bytes;
    length += Buffer.byteLength(json);
    return fits;
  });
}

/**
 * Finds the newest events of the lake that are before the page's beginning and not beyond `last`. `stop`: the time up to which files were
 * left unread.
 */
async function readLake(
  { db, files }: { readonly db: Database; readonly files: FileStore },
  environmentId: number,
  query: UserEventsQuery,
  last: EventPosition | null,
): Promise<{ readonly found: readonly ReadEvent[]; readonly stop: string | null }> {
  const { userId, to, eventName, before, limit } = query;
  const from = last?.at ?? query.from;
  const ids = await findAllIds(db, environmentId, [userId]);
  const mayHold = createFilterTest('users', ids);
  const eventNames = eventName === null ? [] : [eventName];
  const lake = filterOf({ from, to, eventNames, companyIds: [], eventKinds: [], exclusions: [] }, ids);
  const isAsked = (event: ReadEvent) =>
    (before === null || newestFirst(before, event) < 0) && (last === null || newestFirst(event, last) <= 0);
  const data = (await findData(db, environmentId, { from, to }))
    .filter(({ firstMicros }) => before === null || firstMicros <= microsOf(before.at))
    .sort((a, b) => b.lastMicros - a.lastMicros);
  let [found, opened]: [ReadEvent[], number] = [[], 0];
  for (const file of data) {
    const end = instantOfMicros(file.lastMicros);
    const oldest = found[limit];
    if (oldest !== undefined && end < oldest.at) break;
    if (!mayHoldAny(file, lake.wanted) || !mayHold(await readFilter(db, file))) continue;
    if (opened++ === MAX_PAGE_LAKE_FILES) return { found, stop: end };
    for await (const group of readGroups(files, file, lake.wanted)) {
      const events = Array.from(findHits(group, lake).rows, (row) => toRead(group.event(row), userId));
      found = [...found, ...events.filter(isAsked)].sort(newestFirst).slice(0, limit + 1);
    }
  }
  return { found, stop: null };
}

/** Writes an event as the database does. */
function toRead({ micros, metadata, ...event }: LakeEvent, userId: string): ReadEvent {
  const at = instantOfMicros(micros);
  const fields = JSON.stringify({ ...event, user_id: userId, inserted_at: at });
  return { at, id: event.event_id, json: `${fields.slice(0, -1)},"metadata":${metadata}}` };
}
