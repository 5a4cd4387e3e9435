import { type RawBuilder, sql } from 'kysely';
import type pg from 'pg';
import { instantOfMicros } from '../../domain/instant.ts';
import {
  ARCHIVE_BATCH_BYTES,
  ARCHIVE_BATCH_ROWS,
  ARCHIVE_SEGMENT_BATCH_BYTES,
  ARCHIVE_SEGMENT_BATCH_ROWS,
} from '../../domain/limits.ts';
import type { FileStore } from '../../files/file-store.ts';
import { type LakeEvent, mergeFiles } from '../../lake/read-events.ts';
import { databaseOn } from '../../postgres/database.ts';
import { findAllIds } from '../../postgres/stores/aliases.ts';
import { type DataFile, findData } from '../../postgres/stores/lake.ts';
import { eventTable } from '../../postgres/stores/retention.ts';
import { findRetiredTables } from '../../postgres/stores/retirements.ts';
import { type Filter, instant, integer, microsOf, text } from '../filter.ts';

/*
 * Events that left `sluice.events` are exported by the same select as the others, so that filters, columns and values are
 * the same: archived ones are read from their files in order of time and handed to PostgreSQL a batch at a time, as JSON in
 * a parameter. What is stored of the time between the last event of one batch and that of the next goes with it, and what
 * is stored of the time after them all comes last.
 */

/** The events that an export reads beside `sluice.events`, within its snapshot. */
interface LeftEvents {
  readonly data: readonly DataFile[];
  /** Events on their way into the lake. */
  readonly tables: readonly string[];
  /** The users that are asked for, by all ids under which the lake has them. */
  readonly userIds: readonly string[];
}

type EventSource = RawBuilder<unknown>;

/** A place in the order of exports. */
type Place = Pick<LakeEvent, 'micros' | 'event_id' | 'user_id'>;

const columns = sql`event_id, event_type, event_name, user_id, company_id, source, inserted_at, metadata`;

/** The client must be in the transaction that reads. */
export async function findLeftEvents(
  client: pg.PoolClient,
  { environmentId, request }: Filter,
): Promise<LeftEvents> {
  const db = databaseOn(client);
  return {
    // Events whose retention ended before the increment are not in it.
    data: request.since === null ? await findData(db, environmentId, request) : [],
    tables: await findRetiredTables(db),
    userIds: request.userIds.length === 0 ? [] : await findAllIds(db, environmentId, request.userIds),
  };
}

/** Returns the source of events in the database, without the lake. */
export function storedEvents(filter: Filter, { tables }: Pick<LeftEvents, 'tables'>): EventSource {
  return storedBetween(filter, tables, null, null, null);
}

export async function* allEvents(
  files: FileStore,
  filter: Filter,
  { data, tables, userIds }: LeftEvents,
): AsyncGenerator<EventSource> {
  let after: Place | null = null;
  for await (const batch of batches(files, filter, data, userIds)) {
    const upTo: Place | undefined = batch.at(-1);
    if (upTo === undefined) continue;
    yield storedBetween(filter, tables, after, upTo, batch);
    after = upTo;
  }
  yield storedBetween(filter, tables, after, null, null);
}

function storedBetween(
  { environmentId }: Filter,
  tables: readonly string[],
  after: Place | null,
  upTo: Place | null,
  batch: readonly LakeEvent[] | null,
): EventSource {
  const conditions = [
    sql`e.environment_id = ${integer(environmentId)}`,
    ...(after === null ? [] : [bound(after, sql`>`, sql`>=`)]),
    ...(upTo === null ? [] : [bound(upTo, sql`<=`, sql`<=`)]),
    // It came again after it had been archived.
    ...(batch === null
      ? []
      : [
          sql`not exists (
            select 1
            from archived a
            where a.user_id = e.user_id and a.inserted_at = e.inserted_at and a.event_id = e.event_id
          )`,
        ]),
  ];
  const from = [sql.table('events'), ...tables.map(eventTable)];
  const selects = from.map(
    (table) =>
      sql`select environment_id, ${columns}, position from ${table} e where ${sql.join(conditions, sql` and `)}`,
  );
  if (batch === null) return sql`(${sql.join(selects, sql` union all `)})`;
  return sql`(
    with archived as materialized (
      select
        ${integer(environmentId)} as environment_id, event_id, event_type, event_name,
        coalesce(${personOf(environmentId)}, user_id) as user_id, company_id, source, inserted_at, metadata
      from json_to_recordset(${asJson(batch)}) as given (event_id text collate "C", event_type text,
        event_name text collate "C", user_id text collate "C", company_id text collate "C", source text,
        inserted_at timestamptz, metadata jsonb)
    )
    ${sql.join([...selects, sql`select environment_id, ${columns}, 0 from archived`], sql` union all `)}
  )`;
}

/** The lake keeps the ids that events had. With a limit it is always an index look-up per row. */
const personOf = (environmentId: number) => sql`(
  select a.user_id from aliases a where a.environment_id = ${integer(environmentId)} and a.alias = given.user_id limit 1
)`;

/** The time alone as well: partitions are found by it. */
function bound(
  { micros, event_id, user_id }: Place,
  sign: RawBuilder<unknown>,
  timeSign: RawBuilder<unknown>,
) {
  const moment = instant(instantOfMicros(micros));
  return sql`e.inserted_at ${timeSign} ${moment}
    and (e.inserted_at, e.event_id, e.user_id) ${sign} (${moment}, ${text(event_id)}, ${text(user_id)})`;
}

/** The text of their metadata is JSON already, and stays as it is. */
function asJson(batch: readonly LakeEvent[]): RawBuilder<unknown> {
  const rows = batch.map(({ micros, metadata, ...others }) => {
    const fields = JSON.stringify({ ...others, inserted_at: instantOfMicros(micros) });
    return `${fields.slice(0, -1)},"metadata":${metadata}}`;
  });
  return sql`${`[${rows.join(',')}]`}::json`;
}

/** Yields batches without the events that the select would leave out by time or by a list. */
async function* batches(
  files: FileStore,
  filter: Filter,
  data: readonly DataFile[],
  userIds: readonly string[],
): AsyncGenerator<readonly LakeEvent[]> {
  const isWanted = createTest(filter, userIds);
  const hasSegments = filter.segment !== null || filter.excludedSegments.length > 0;
  // A segment is worked out anew for each batch.
  const maxRows = hasSegments ? ARCHIVE_SEGMENT_BATCH_ROWS : ARCHIVE_BATCH_ROWS;
  const maxBytes = hasSegments ? ARCHIVE_SEGMENT_BATCH_BYTES : ARCHIVE_BATCH_BYTES;
  let batch: LakeEvent[] = [];
  let bytes = 0;
  for await (const event of mergeFiles(files, data)) {
    if (!isWanted(event)) continue;
    batch.push(event);
    bytes += event.metadata.length + event.event_id.length + event.user_id.length;
    if (batch.length < maxRows && bytes < maxBytes) continue;
    yield batch;
    batch = [];
    bytes = 0;
  }
  yield batch;
}

function createTest({ request }: Filter, userIds: readonly string[]): (event: LakeEvent) => boolean {
  const { from, to, companyIds, eventKinds, eventNames } = request;
  const first = from === null ? Number.NEGATIVE_INFINITY : microsOf(from);
  const end = to === null ? Number.POSITIVE_INFINITY : microsOf(to);
  const isIn = (list: readonly string[]): ((value: string | null) => boolean) => {
    if (list.length === 0) return () => true;
    const values = new Set<string | null>(list);
    return (value) => values.has(value);
  };
  const [isUser, isCompany] = [isIn(userIds), isIn(companyIds)];
  const [kinds, names] = [new Set(eventKinds), new Set(eventNames)];
  const isKind = ({ event_type, event_name }: LakeEvent): boolean =>
    kinds.size + names.size === 0 || kinds.has(event_type) || names.has(event_name);
  return (event) =>
    event.micros >= first &&
    event.micros < end &&
    isUser(event.user_id) &&
    isCompany(event.company_id) &&
    isKind(event);
}
