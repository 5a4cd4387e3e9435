import type pg from 'pg';
import { type ExportRequest, everything } from '../../domain/export.ts';
import { instantOfMicros } from '../../domain/instant.ts';
import { COLD_COUNTS_BYTES } from '../../domain/limits.ts';
import type { FileStore } from '../../files/file-store.ts';
import { compileForCopy, copyOut } from '../../postgres/copy-out.ts';
import { type Database, databaseOn } from '../../postgres/database.ts';
import { addColdCounts, analyzeColdCounts } from '../../postgres/stores/cold-counts.ts';
import { findArchivedUntil } from '../../postgres/stores/events.ts';
import { whereHolds } from '../../segments/compile-segment.ts';
import { daysBefore } from '../../segments/compile-test.ts';
import {
  type ColdEvents,
  type EventCondition,
  eventConditions,
  type Segment,
} from '../../segments/segment.ts';
import { type Filter, microsOf } from '../filter.ts';
import { allEvents, EventValues, findLeftEvents } from './archived-events.ts';
import { type Hits, textsOf } from './lake-hits.ts';
import { lakeWriters } from './lake-rows.ts';
import { selectValues } from './page.ts';
import { ndjsonText, type RowBlock, rowBlocks } from './rows.ts';

/*
 * Counting events that have left `sluice.events`. Time is cut in two: what is before the last of them is read as exports read it, the lake
 * and what is stored merged, so that nothing is missed or counted twice; what comes later PostgreSQL counts by itself. What was read goes,
 * summed up, into a table of the session, which the statement that asks joins.
 */

export interface ColdReader {
  /** In a transaction. */
  readonly client: pg.PoolClient;
  readonly files: FileStore;
}

/** An event that was read, until the next is. */
export interface ColdEvent {
  readonly micros: number;
  text(column: 'user_id' | 'event_name'): string;
  /** The properties, a JSON text. */
  metadata(): string;
}

type Asked = Partial<Pick<ExportRequest, 'from' | 'to' | 'eventNames' | 'userIds' | 'companyIds'>>;

interface ColdReading {
  readonly signal: AbortSignal;
  take(event: ColdEvent): void;
  /** What `take` adds to. */
  readonly counts?: ColdCounts;
}

/** Returns the time from which on all events are in `sluice.events` only; `null` if none have left it. */
export async function findColdEnd(db: Database, environmentId: number): Promise<string | null> {
  const archived = await findArchivedUntil(db, environmentId);
  return archived && instantOfMicros(microsOf(archived) + 1);
}

/** Reads the events that are asked for up to the end of those that have left `sluice.events`, and returns it; `null` if none of them have. */
export async function readColdEvents(
  reader: ColdReader,
  environmentId: number,
  asked: Asked,
  { signal, take, counts }: ColdReading,
): Promise<string | null> {
  const { client } = reader;
  const until = await findColdEnd(databaseOn(client), environmentId);
  if (until === null || (asked.from && microsOf(asked.from) >= microsOf(until))) return null;
  const to = asked.to && microsOf(asked.to) < microsOf(until) ? asked.to : until;
  const request: ExportRequest = { ...everything, ...asked, to };
  const filter: Filter = { environmentId, request, segment: null, excludedSegments: [] };
  const left = await findLeftEvents(client, filter);
  if (left.data.length + left.tables.length === 0) return null;
  const writers = lakeWriters('events', filter);
  const none: RowBlock = { bytes: Buffer.alloc(0), ends: [] };
  const whole: { hits: Hits | null } = { hits: null };
  const blocks = allEvents(reader, filter, left, {
    ...writers,
    signal,
    copy(source) {
      const select = compileForCopy(selectValues('events', { ...filter, events: source }));
      return rowBlocks(copyOut(client, select, 'lines', signal), ndjsonText);
    },
    toRows(hits) {
      whole.hits = hits;
      return none;
    },
  });
  const values = new EventValues(writers.columns);
  for await (const block of blocks) {
    for (const event of whole.hits === null ? eventsIn(block, values) : eventsOf(whole.hits)) {
      take(event);
      if (counts?.isFull) await counts.store();
    }
    whole.hits = null;
  }
  return until;
}

function* eventsIn({ bytes, ends }: RowBlock, values: EventValues): Generator<ColdEvent> {
  const text = (column: string) => values.text(column).toString();
  const event = { micros: 0, text, metadata: () => values.json('metadata') };
  for (const [row, end] of ends.entries()) {
    values.set(bytes, row === 0 ? 0 : (ends[row - 1] as number), end);
    event.micros = values.micros;
    yield event;
  }
}

/** A text of a dictionary is decoded once. */
function* eventsOf(hits: Hits): Generator<ColdEvent> {
  const known: Record<string, string[]> = { user_id: [], event_name: [], metadata: [] };
  let row = 0;
  const text = (column: string): string => {
    const { memory, starts, ends, places } = textsOf(hits, column);
    const texts = known[column] as string[];
    const place = places[row] as number;
    texts[place] ??= memory.toString('utf8', starts[place], ends[place]);
    return texts[place];
  };
  const event = { micros: 0, text, metadata: () => text('metadata') };
  for (row of hits.rows) {
    event.micros = hits.group.micros[row] as number;
    yield event;
  }
}

/** The bytes that a key takes besides its characters. */
const keyBytes = 64;
/** No text of the database has it. */
const separator = '\0';

const propertyKey = (event: ColdEvent): string => event.text('user_id') + separator + event.metadata();

/** Counts of keys by question, until they are in the session's table. */
export class ColdCounts {
  readonly #db: Database;
  readonly #counts = new Map<number, Map<string, number>>();
  readonly #conditions: readonly EventCondition[];
  readonly #now: Date;
  #bytes = 0;

  /** The first questions are about conditions. */
  constructor(client: pg.PoolClient, conditions: readonly EventCondition[] = [], now = new Date()) {
    this.#db = databaseOn(client);
    this.#conditions = conditions;
    this.#now = now;
  }

  /** `key`: of a condition on properties a `propertyKey`. */
  add(question: number, key: string): void {
    const counts = this.#counts.get(question) ?? new Map<string, number>();
    this.#counts.set(question, counts);
    const count = counts.get(key);
    if (count === undefined) this.#bytes += keyBytes + key.length;
    counts.set(key, (count ?? 0) + 1);
  }

  get isFull(): boolean {
    return this.#bytes > COLD_COUNTS_BYTES;
  }

  async store(): Promise<void> {
    for (const [question, counts] of this.#counts) {
      const condition = this.#conditions[question];
      const asksMetadata = condition !== undefined && condition.where.length > 0;
      const [keys, metadata]: [string[], string[]] = asksMetadata
        ? splitKeys(counts)
        : [[...counts.keys()], []];
      const counted = { keys, events: [...counts.values()], metadata };
      await addColdCounts(this.#db, question, counted, condition && whereHolds(condition, this.#now));
    }
    this.#counts.clear();
    this.#bytes = 0;
  }

  async end(): Promise<void> {
    await this.store();
    await analyzeColdCounts(this.#db);
  }
}

function splitKeys(counts: ReadonlyMap<string, number>): [keys: string[], metadata: string[]] {
  const pairs = Array.from(counts.keys(), (key) => key.split(separator) as [string, string]);
  return [pairs.map(([key]) => key), pairs.map(([, metadata]) => metadata)];
}

interface Counting {
  readonly segments: readonly Segment[];
  readonly now: Date;
  /** Only events of these users count. */
  readonly userIds?: readonly string[];
  readonly signal: AbortSignal;
}

/** Counts what the conditions of segments ask of events that have left `sluice.events`. */
export async function countEvents(
  reader: ColdReader,
  environmentId: number,
  { segments, now, userIds = [], signal }: Counting,
): Promise<ColdEvents> {
  const conditions = segments.flatMap(eventConditions);
  if (conditions.length === 0) return () => null;
  const counts = new ColdCounts(reader.client, conditions, now);
  const nowMicros = 1000 * now.getTime();
  const questions = conditions.map(({ event, withinDays, where }, question) => ({
    ...{ event, question, asksMetadata: where.length > 0 },
    from: withinDays === null ? Number.NEGATIVE_INFINITY : microsOf(daysBefore(now, withinDays)),
    to: withinDays === null ? Number.POSITIVE_INFINITY : nowMicros,
  }));
  const byName = new Map<string, typeof questions>();
  for (const each of questions) byName.set(each.event, [...(byName.get(each.event) ?? []), each]);
  const from = Math.min(...questions.map((each) => each.from));
  const since = Number.isFinite(from) ? instantOfMicros(from) : null;
  const asked = { from: since, eventNames: [...byName.keys()], userIds };
  const until = await readColdEvents(reader, environmentId, asked, {
    signal,
    counts,
    take(event) {
      const { micros } = event;
      // Made once, however many questions are about the event.
      let key: string | null = null;
      for (const { question, asksMetadata, from, to } of byName.get(event.text('event_name')) ?? []) {
        if (micros < from || micros > to) continue;
        if (asksMetadata) key ??= propertyKey(event);
        counts.add(question, asksMetadata ? (key as string) : event.text('user_id'));
      }
    },
  });
  if (until === null) return () => null;
  await counts.end();
  return (condition) => {
    const question = conditions.indexOf(condition);
    return question === -1 ? null : { question, until };
  };
}
