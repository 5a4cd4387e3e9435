/*
 * The events of a user, newest first: those of the database, those on their way to the lake, and those in it, merged page by page.
 */
import { instantOfMicros } from '../domain/instant.ts';
import { MAX_PAGE_LAKE_FILES } from '../domain/limits.ts';
import { microsOf } from '../export/filter.ts';
import { filterOf, findHits } from '../export/write/lake-hits.ts';
import type { FileStore } from '../files/file-store.ts';
import { bitsOf } from '../lake/id-filter.ts';
import { mayHoldAny, readGroups } from '../lake/read-events.ts';
import type { LakeEvent } from '../lake/row-group.ts';
import { type Database, inTransaction } from '../postgres/database.ts';
import {
  type EventPosition,
  findArchivedUntil,
  type ReadEvent,
  readUserEvents,
  type UserEventsQuery,
} from '../postgres/stores/events.ts';
import { findData, findHolders, keepFiles } from '../postgres/stores/lake-files.ts';
import { findRetiredTables } from '../postgres/stores/retirements.ts';
import type { Sources } from './segments.ts';

interface Page {
  readonly events: readonly ReadEvent[];
  /** The place where the next page begins; null: this is the last. */
  readonly next: EventPosition | null;
}

/** Reads a page. If it would take more files of the lake than MAX_PAGE_LAKE_FILES, it may be short or empty and not the last. */
export async function readUserHistory(
  { reader, files }: Pick<Sources, 'reader' | 'files'>,
  environmentId: number,
  query: UserEventsQuery,
): Promise<Page> {
  // Each place before the one that its events move to: what moves meanwhile is found twice, and not missed.
  const pages = [await readUserEvents(reader.pool, environmentId, query)];
  const { events, last: first } = merged(pages);
  const until = await findArchivedUntil(reader.db, environmentId);
  const from = first?.at ?? query.from;
  if (until === null || (from !== null && microsOf(until) < microsOf(from))) return { events, next: first };
  return inTransaction(reader.pool, async ({ client, db }) => {
    await keepFiles(db);
    const tables = await findRetiredTables(db);
    for (const table of tables)
      pages.push(await readUserEvents(client, environmentId, query, { table, id: query.userId }));
    const { last } = merged(pages);
    const { found, stop } = await readLake({ db, files }, environmentId, query, last);
    const all = merged([...pages, { events: found, more: false }]).events.filter(
      ({ at }) => stop === null || at > stop,
    );
    const page = fitting(all, query);
    if (page.length < all.length) return { events: page, next: page.at(-1) ?? null };
    return { events: page, next: stop === null ? last : { at: instantOfMicros(microsOf(stop) + 1), id: '' } };
  });
}

/** Merges pages, each event once, up to where the first of them ends that is not the last of its source: `last`. */
function merged(pages: readonly Awaited<ReturnType<typeof readUserEvents>>[]) {
  const ends = pages.flatMap(({ events, more }) => (more ? (events.at(-1) ?? []) : [])).sort(newestFirst);
  const last = ends[0] ?? null;
  const all = new Map(pages.flatMap(({ events }) => events).map((event) => [keyOf(event), event]));
  const isBefore = (event: EventPosition) => last === null || newestFirst(event, last) <= 0;
  return { last, events: [...all.values()].filter(isBefore).sort(newestFirst) };
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
  const ids = [userId];
  const eventNames = eventName === null ? [] : [eventName];
  const lake = filterOf({ from, to, eventNames, companyIds: [], eventKinds: [], exclusions: [] }, ids);
  const isAsked = (event: ReadEvent) =>
    (before === null || newestFirst(before, event) < 0) && (last === null || newestFirst(event, last) <= 0);
  const data = (await findData(db, environmentId, { from, to }))
    .filter(
      (file) => (before === null || file.firstMicros <= microsOf(before.at)) && mayHoldAny(file, lake.wanted),
    )
    .sort((a, b) => b.lastMicros - a.lastMicros);
  const holders = await findHolders(db, data, bitsOf('users', ids));
  let [found, opened]: [ReadEvent[], number] = [[], 0];
  for (const file of data) {
    const end = instantOfMicros(file.lastMicros);
    const oldest = found[limit];
    if (oldest !== undefined && end < oldest.at) break;
    if (!holders.has(file.fileId)) continue;
    // Files that reach over the page's beginning are read for each page: this one must end before it.
    const isFurther = before === null || file.lastMicros + 1 < microsOf(before.at);
    if (opened++ >= MAX_PAGE_LAKE_FILES && isFurther) return { found, stop: end };
    for await (const group of readGroups(files, file, lake.wanted)) {
      const events = Array.from(findHits(group, lake).rows, (row) => toRead(group.event(row), userId));
      found = [...found, ...events.filter(isAsked)].sort(newestFirst).slice(0, limit + 1);
      group.release();
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
