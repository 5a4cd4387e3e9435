import { type RawBuilder, sql } from 'kysely';
import type pg from 'pg';
import { entities } from '../../domain/entity.ts';
import { Fault } from '../../domain/errors.ts';
import type { Column } from '../../domain/export-columns.ts';
import { instantOfMicros } from '../../domain/instant.ts';
import { ARCHIVE_BATCH_BYTES, ARCHIVE_BATCH_ROWS } from '../../domain/limits.ts';
import type { FileStore } from '../../files/file-store.ts';
import { bitsOf } from '../../lake/id-filter.ts';
import { mayHoldAny, readGroups } from '../../lake/read-events.ts';
import { type Database, databaseOn, findValue } from '../../postgres/database.ts';
import { type DataFile, findData, findHolders, readSums } from '../../postgres/stores/lake-files.ts';
import { eventTable } from '../../postgres/stores/retention.ts';
import { findRetiredTables } from '../../postgres/stores/retirements.ts';
import { text } from '../../segments/compile-test.ts';
import { type Filter, instant, integer } from '../filter.ts';
import {
  comparePlaces,
  copyOf,
  filterOf,
  findHits,
  type Hits,
  type LakeFilter,
  mergeFiles,
  type Place,
  placeAt,
} from './lake-hits.ts';
import { openPersons, type Persons } from './lake-persons.ts';
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
  const { userIds } = request;
  const lake = filterOf(request, userIds);
  const asked = { users: userIds, companies: request.companyIds };
  let kept = data.filter((file) => mayHoldAny(file, lake.wanted));
  for (const entity of entities) {
    if (asked[entity].length === 0) continue;
    const holders = await findHolders(db, kept, bitsOf(entity, asked[entity]));
    kept = kept.filter(({ fileId }) => holders.has(fileId));
  }
  return { data: kept, tables, lake, persons: kept.length === 0 ? null : openPersons(db, filter) };
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
  for await (const hits of mergeFiles(data, (file) => readHits(reader, file, left, rows.signal))) {
    const last = placeAt(hits, hits.rows.length - 1);
    if (held.places.length > 0 || next <= last.micros) {
      // Its group is released while events are held.
      if (held.places.length === 0 && after !== null) after = copyOf(after);
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
  signal: AbortSignal,
): AsyncGenerator<Hits> {
  // Says that the session is not idle, too.
  const sums = await readSums(databaseOn(client), file);
  let ahead: Hits[] = [];
  for await (const group of readGroups(files, { ...file, sums }, lake.wanted)) {
    signal.throwIfAborted();
    const hits = findHits(group, lake);
    if (hits.rows.length === 0) group.release();
    else if (persons === null) yield hits;
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
    for (let at = 0; at < hits.rows.length; at++) this.places.push(copyOf(placeAt(hits, at)));
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
  const row = new EventValues(columns);
  return (bytes, start, end) => {
    row.set(bytes, start, end);
    return { micros: row.micros, id: row.text('event_id'), user: row.text('user_id') };
  };
}

/** A row of values of an event, until the next is set. */
export class EventValues {
  readonly #ends: Int32Array;
  readonly #places: ReadonlyMap<string, number>;
  #bytes: Buffer = Buffer.alloc(0);
  #start = 0;

  constructor(columns: readonly Column[]) {
    this.#ends = new Int32Array(columns.length);
    this.#places = new Map(columns.map(({ name }, place) => [name, place]));
  }

  set(bytes: Buffer, start: number, end: number): void {
    findValues(bytes, start, end, this.#ends);
    this.#bytes = bytes;
    this.#start = start;
  }

  get micros(): number {
    const [start, end] = this.#boundsOf('inserted_at');
    return Number(readInteger(this.#bytes, start, end));
  }

  text(name: string): Buffer {
    const [start, end] = this.#boundsOf(name);
    return unescaped(this.#bytes, start, end) ?? this.#bytes.subarray(start + 1, end - 1);
  }

  json(name: string): string {
    return this.#bytes.toString('utf8', ...this.#boundsOf(name));
  }

  #boundsOf(name: string): [start: number, end: number] {
    const place = this.#places.get(name) as number;
    return [place === 0 ? this.#start : (this.#ends[place - 1] as number) + 1, this.#ends[place] as number];
  }
}
