import { type RawBuilder, sql } from 'kysely';
import type pg from 'pg';
import { entities } from '../../domain/entity.ts';
import { Fault } from '../../domain/errors.ts';
import { instantOfMicros } from '../../domain/instant.ts';
import {
  ARCHIVE_BATCH_BYTES,
  ARCHIVE_BATCH_ROWS,
  ARCHIVE_SEGMENT_BATCH_GROUPS,
  MAX_KNOWN_PERSONS,
} from '../../domain/limits.ts';
import type { FileStore } from '../../files/file-store.ts';
import { createFilterTest } from '../../lake/id-filter.ts';
import { mayHoldAny, readGroups } from '../../lake/read-events.ts';
import { columnOf, type Database, databaseOn, findValue } from '../../postgres/database.ts';
import { findAllIds, findPersons, hasAliases } from '../../postgres/stores/aliases.ts';
import { type DataFile, findData, readFilter } from '../../postgres/stores/lake.ts';
import { eventTable } from '../../postgres/stores/retention.ts';
import { findRetiredTables } from '../../postgres/stores/retirements.ts';
import { type Filter, inSegments, instant, integer, leftOut, nameTest, text } from '../filter.ts';
import {
  comparePlaces,
  filterOf,
  findHits,
  type Hits,
  inOrder,
  type LakeFilter,
  mapTexts,
  mergeFiles,
  type Place,
  placeAt,
} from './lake-hits.ts';
import type { Column } from './page.ts';
import { findValues, Gathered, type RowBlock, readInteger, unescaped } from './rows.ts';

/*
 * Events that left `sluice.events` are read from their files in order of time, and those that are stored go between them. The
 * filters are those of `exportsEvent`; PostgreSQL is asked only who a user is now, and who is in a segment.
 */

/** The events that an export reads beside `sluice.events`, within its snapshot. */
export interface LeftEvents {
  readonly data: readonly DataFile[];
  /** Events on their way into the lake. */
  readonly tables: readonly string[];
  readonly lake: LakeFilter;
  readonly persons: Persons | null;
}

type EventSource = RawBuilder<unknown>;

const columns = sql`event_id, event_type, event_name, user_id, company_id, source, inserted_at, metadata`;

/** The client must be in the transaction that reads. */
export async function findLeftEvents(client: pg.PoolClient, filter: Filter): Promise<LeftEvents> {
  const { environmentId, request } = filter;
  const db = databaseOn(client);
  const tables = await findRetiredTables(db);
  // Events whose retention ended before the increment are not in it.
  const data = request.since === null ? await findData(db, environmentId, request) : [];
  const userIds = request.userIds.length === 0 ? [] : await findAllIds(db, environmentId, request.userIds);
  const lake = filterOf(request, userIds);
  const asked = { users: userIds, companies: request.companyIds };
  const tests = entities.flatMap((entity) =>
    asked[entity].length === 0 ? [] : [createFilterTest(entity, asked[entity])],
  );
  const kept: DataFile[] = [];
  for (const file of data) {
    if (!mayHoldAny(file, lake.wanted)) continue;
    const ids = tests.length === 0 ? null : await readFilter(db, file);
    if (tests.every((mayHold) => mayHold(ids))) kept.push(file);
  }
  return { data: kept, tables, lake, persons: kept.length === 0 ? null : await openPersons(db, filter) };
}

async function openPersons(db: Database, filter: Filter): Promise<Persons | null> {
  const aliased = await hasAliases(db, filter.environmentId);
  const asks =
    filter.segment !== null ||
    filter.excludedSegments.length > 0 ||
    filter.request.exclusions.some(({ kind }) => kind === 'user');
  return aliased || asks ? new Persons(db, filter, aliased) : null;
}

/** The users of the lake's events, which keep the ids that they had, and which of them an export wants. */
class Persons {
  /** Groups for which persons are looked up together. */
  readonly ahead: number;
  readonly #db: Database;
  readonly #filter: Filter;
  readonly #aliased: boolean;
  readonly #isWanted: (person: string) => boolean;
  /** By the id of the lake; null: the export leaves the person out. */
  readonly #known = new Map<string, string | null>();

  constructor(db: Database, filter: Filter, aliased: boolean) {
    this.#db = db;
    this.#filter = filter;
    this.#aliased = aliased;
    const { userIds, exclusions } = filter.request;
    const chosen = new Set(userIds);
    const isLeftOut = nameTest(leftOut(exclusions, 'user'));
    this.#isWanted = (person) => (chosen.size === 0 || chosen.has(person)) && !isLeftOut(person);
    this.ahead = this.#asksSegments ? ARCHIVE_SEGMENT_BATCH_GROUPS : 1;
  }

  get #asksSegments(): boolean {
    return this.#filter.segment !== null || this.#filter.excludedSegments.length > 0;
  }

  /** Returns the hits that are left, by the users whom they belong to. */
  async of(all: readonly Hits[]): Promise<Hits[]> {
    const ids = new Set<string>();
    for (const { rows, users } of all) {
      const seen = new Uint8Array(users.starts.length);
      for (const row of rows) {
        const place = users.places[row] as number;
        if (seen[place] === 0) ids.add(users.memory.toString('utf8', users.starts[place], users.ends[place]));
        seen[place] = 1;
      }
    }
    await this.#lookUp([...ids]);
    return all.map((hits) => this.#apply(hits)).filter(({ rows }) => rows.length > 0);
  }

  async #lookUp(ids: readonly string[]): Promise<void> {
    if (this.#known.size > MAX_KNOWN_PERSONS) this.#known.clear();
    const unknown = ids.filter((id) => !this.#known.has(id));
    if (unknown.length === 0) return;
    const { environmentId } = this.#filter;
    const aliases = this.#aliased ? await findPersons(this.#db, environmentId, unknown) : new Map();
    const personOf = (id: string): string => aliases.get(id) ?? id;
    const wanted = [...new Set(unknown.map(personOf).filter(this.#isWanted))];
    const kept = new Set(this.#asksSegments ? await this.#findMembers(wanted) : wanted);
    for (const id of unknown) this.#known.set(id, kept.has(personOf(id)) ? personOf(id) : null);
  }

  #findMembers(persons: readonly string[]): Promise<string[]> {
    return columnOf<string>(this.#db)`
      select given.id
      from unnest(${[...persons]}::text[]) as given (id)
      where ${sql.join(inSegments(this.#filter, 'given.id'), sql` and `)}`;
  }

  #apply(hits: Hits): Hits {
    const { memory, starts, ends, places } = hits.users;
    const persons = new Map<number, string | null>();
    let isSame = true;
    const rows = hits.rows.filter((row) => {
      const place = places[row] as number;
      let person = persons.get(place);
      if (person === undefined) {
        const id = memory.toString('utf8', starts[place], ends[place]);
        person = this.#known.get(id) ?? null;
        persons.set(place, person);
        if (person !== null && person !== id) isSame = false;
      }
      return person !== null;
    });
    if (isSame) return { ...hits, rows };
    const users = mapTexts(hits.users, (id, place) => persons.get(place) ?? id);
    return inOrder({ ...hits, rows, users });
  }
}

/** Returns the source of events in the database between two places, the second included. */
export function storedEvents(
  { environmentId }: Filter,
  tables: readonly string[],
  { after = null, upTo = null }: { readonly after?: Place | null; readonly upTo?: Place | null } = {},
): EventSource {
  const conditions = [
    sql`e.environment_id = ${integer(environmentId)}`,
    ...(after === null ? [] : [bound(after, sql`>`, sql`>=`)]),
    ...(upTo === null ? [] : [bound(upTo, sql`<=`, sql`<=`)]),
  ];
  const selects = [sql.table('events'), ...tables.map(eventTable)].map(
    (table) =>
      sql`select environment_id, ${columns}, position from ${table} e where ${sql.join(conditions, sql` and `)}`,
  );
  return sql`(${sql.join(selects, sql` union all `)})`;
}

/** The time alone as well: partitions are found by it. */
function bound({ micros, id, user }: Place, sign: RawBuilder<unknown>, timeSign: RawBuilder<unknown>) {
  const moment = instant(instantOfMicros(micros));
  return sql`e.inserted_at ${timeSign} ${moment}
    and (e.inserted_at, e.event_id, e.user_id) ${sign} (${moment}, ${text(id.toString())}, ${text(user.toString())})`;
}

/** Finds the time of the next stored event. */
async function findNext(
  db: Database,
  filter: Filter,
  tables: readonly string[],
  after: Place | null,
): Promise<number> {
  const micros = await findValue<number | null>(db)`
    select (extract(epoch from min(inserted_at)) * 1000000)::bigint
    from ${storedEvents(filter, tables, { after })} as stored`;
  return micros ?? Number.POSITIVE_INFINITY;
}

/** The rows of an export that reads the lake. */
export interface LakeRows {
  /** Reads rows of values of stored events. */
  copy(events: EventSource): AsyncGenerator<RowBlock, number>;
  /** Makes rows of values. */
  readonly toValues: (hits: Hits) => RowBlock;
  /** Makes rows where no others come between. */
  readonly toRows: (hits: Hits) => RowBlock;
  readonly columns: readonly Column[];
  readonly signal: AbortSignal;
}

interface Reader {
  readonly files: FileStore;
  readonly client: pg.PoolClient;
}

/** Yields the rows of all events, and returns their number. */
export async function* allEvents(
  reader: Reader,
  filter: Filter,
  left: LeftEvents,
  rows: LakeRows,
): AsyncGenerator<RowBlock, number> {
  const { data, tables } = left;
  const db = databaseOn(reader.client);
  let count = 0;
  let after: Place | null = null;
  let next = await findNext(db, filter, tables, null);
  let held = new HeldEvents();
  const merge = async function* (): AsyncGenerator<RowBlock> {
    const upTo = held.places.at(-1);
    if (upTo === undefined) return;
    const stored = rows.copy(storedEvents(filter, tables, { after, upTo }));
    for await (const block of mergeStored(held, stored, placeReader(rows.columns))) {
      count += block.ends.length;
      yield block;
    }
    held = new HeldEvents();
    after = upTo;
    next = await findNext(db, filter, tables, after);
  };
  for await (const hits of mergeFiles(data, (file) => readHits(reader, file, left))) {
    rows.signal.throwIfAborted();
    const last = placeAt(hits, hits.rows.length - 1);
    if (held.places.length > 0 || next <= last.micros) {
      held.add(hits, rows.toValues(hits));
      if (held.places.length >= ARCHIVE_BATCH_ROWS || held.bytes >= ARCHIVE_BATCH_BYTES) yield* merge();
      continue;
    }
    count += hits.rows.length;
    after = last;
    yield rows.toRows(hits);
  }
  yield* merge();
  return count + (yield* rows.copy(storedEvents(filter, tables, { after })));
}

/** Reads the events of a file that are wanted. */
async function* readHits(
  { files, client }: Reader,
  file: DataFile,
  { lake, persons }: LeftEvents,
): AsyncGenerator<Hits> {
  // Says that the session is not idle.
  await client.query('');
  let ahead: Hits[] = [];
  for await (const group of readGroups(files, file, lake.wanted)) {
    const hits = findHits(group, lake);
    if (hits.rows.length === 0) continue;
    if (persons === null) yield hits;
    else if (ahead.push(hits) === persons.ahead) {
      yield* await persons.of(ahead);
      ahead = [];
    }
  }
  if (persons !== null) yield* await persons.of(ahead);
}

/** Events of the lake that stored ones come between. */
class HeldEvents {
  readonly places: Place[] = [];
  readonly blocks: RowBlock[] = [];
  bytes = 0;

  /** The places are copied: they would hold the group. */
  add(hits: Hits, block: RowBlock): void {
    for (let at = 0; at < hits.rows.length; at++) {
      const { micros, id, user } = placeAt(hits, at);
      this.places.push({ micros, id: Buffer.from(id), user: Buffer.from(user) });
    }
    this.blocks.push(block);
    this.bytes += block.bytes.length;
  }

  *rows(): Generator<Buffer> {
    for (const { bytes, ends } of this.blocks) {
      for (const [row, end] of ends.entries()) yield bytes.subarray(row === 0 ? 0 : ends[row - 1], end);
    }
  }
}

/** Merges them. A stored event that is in the lake too came again after it had been archived, and is left out. */
async function* mergeStored(
  held: HeldEvents,
  stored: AsyncGenerator<RowBlock, number>,
  placeOf: (bytes: Buffer, start: number, end: number) => Place,
): AsyncGenerator<RowBlock> {
  const rows = held.rows();
  let [at, read] = [0, 0];
  let next = await stored.next();
  try {
    for (; next.done !== true; next = await stored.next()) {
      const { bytes, ends } = next.value;
      const gathered = new Gathered();
      for (const [row, end] of ends.entries()) {
        const start = row === 0 ? 0 : (ends[row - 1] as number);
        const place = placeOf(bytes, start, end);
        let order = -1;
        for (; at < held.places.length; at++) {
          order = comparePlaces(held.places[at] as Place, place);
          if (order >= 0) break;
          gathered.addRow(rows.next().value);
        }
        if (order !== 0) gathered.addRow(bytes.subarray(start, end));
      }
      read += ends.length;
      yield gathered.block();
    }
  } finally {
    if (next.done !== true) await stored.return(0);
  }
  if (next.value !== read) throw new Fault(`Postgres sent ${next.value} events, ${read} were read`);
  const rest = new Gathered();
  for (const row of rows) rest.addRow(row);
  yield rest.block();
}

/** Returns what finds the place of a row of values. */
function placeReader(columns: readonly Column[]): (bytes: Buffer, start: number, end: number) => Place {
  const ends = new Int32Array(columns.length);
  const [time, event, user] = ['inserted_at', 'event_id', 'user_id'].map((wanted) =>
    columns.findIndex(({ name }) => name === wanted),
  ) as [number, number, number];
  return (bytes, start, end) => {
    findValues(bytes, start, end, ends);
    const startOf = (index: number) => (index === 0 ? start : (ends[index - 1] as number) + 1);
    const textOf = (index: number) => {
      const [from, to] = [startOf(index), ends[index] as number];
      return unescaped(bytes, from, to) ?? bytes.subarray(from + 1, to - 1);
    };
    return {
      micros: Number(readInteger(bytes, startOf(time), ends[time] as number)),
      id: textOf(event),
      user: textOf(user),
    };
  };
}
