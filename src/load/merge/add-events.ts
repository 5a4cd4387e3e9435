/*
 * New events are copied directly into their table. A batch in which some events already exist is
 * merged from temporary tables. The primary key of `events` contains the time and makes content ids
 * unique. A given id can recur with another time, and so can the id of an event without a time.
 * `event_ids` makes these ids unique per user.
 */
import { sql } from 'kysely';
import type pg from 'pg';
import { TransientError } from '../../base/errors.ts';
import { type EventKind, eventKinds } from '../../domain/entity.ts';
import { rowOf, type Transaction } from '../../postgres/database.ts';
import { isMissingPartition } from '../../postgres/sqlstate.ts';
import { copyText, type MergeScope } from './incoming.ts';

type Scope = Pick<MergeScope, 'environmentId' | 'loadId' | 'chunkNo' | 'keepKeys'>;

/** COPY text of events that are assumed to be new. See `EventBuffer`. */
export interface NewEvents {
  readonly text: Buffer;
  /** Rows for `event_ids`. */
  readonly ids: Buffer;
  readonly keyHashes: Buffer | null;
}

/** COPY text of events, some of which may already exist. */
export interface EventBatch {
  readonly text: Buffer;
  /** Rows for `event_ids`. The last column is the hash of the event's key (see `hashedIdText`). */
  readonly ids: Buffer;
  readonly contentHashes: Buffer | null;
}

export type AddedEvents = Readonly<Record<EventKind, number>>;

const columns =
  'environment_id, user_id, event_id, event_type, event_name, company_id, source, inserted_at, metadata';
const idColumns = 'environment_id, user_id, event_id, inserted_at';

/**
 * Copies new events. Throws a unique violation if an event exists, or if another transaction adds
 * it at the same time.
 */
export async function copyEvents(
  { client, db }: Transaction,
  scope: Scope,
  events: NewEvents,
): Promise<void> {
  if (events.ids.length > 0) await copy(client, `event_ids (${idColumns})`, events.ids);
  await copy(client, `events (${columns})`, events.text);
  if (!scope.keepKeys) return;
  await sql`
    insert into load_chunk_keys (load_id, chunk_no, entity, written)
    values (${scope.loadId}, ${scope.chunkNo}, 'events', ${events.keyHashes}::bigint[])`.execute(db);
}

/** Adds new events in key order, so that deadlocks are rare. */
export async function mergeEvents(
  transaction: Transaction,
  scope: Scope,
  batch: EventBatch,
): Promise<AddedEvents> {
  const { db } = transaction;
  await copyIncomingEvents(transaction, batch);
  return reportingPartitions(async () => {
    return rowOf<AddedEvents>(db)`
      with fresh as (
        insert into event_ids (${sql.raw(idColumns)})
        select ${sql.raw(idColumns)}
        from incoming_event_ids
        order by event_id, user_id
        on conflict do nothing
        returning user_id, event_id
      ),
      added as (
        insert into events (${sql.raw(columns)})
        select i.*
        from incoming_events i
        left join incoming_event_ids k on k.user_id = i.user_id and k.event_id = i.event_id
        left join fresh f on f.user_id = i.user_id and f.event_id = i.event_id
        where k.event_id is null or f.event_id is not null
        order by i.inserted_at, i.event_id, i.user_id
        on conflict do nothing
        returning user_id, event_id, event_type
      )
      ${scope.keepKeys ? recorded(scope, batch) : sql``}
      select ${countedByKind} from added`;
  });
}

/**
 * Counts the events that do not exist yet. `planned` is 1 to add them to a plan's counts by name
 * and by date, -1 to subtract them, and 0 if there is no plan.
 */
export async function classifyEvents(
  transaction: Transaction,
  scope: Scope,
  batch: EventBatch,
  planned: 1 | 0 | -1,
): Promise<AddedEvents> {
  const { db } = transaction;
  await copyIncomingEvents(transaction, batch);
  return rowOf<AddedEvents>(db)`
    with added as (
      select i.*
      from incoming_events i
      left join incoming_event_ids k on k.user_id = i.user_id and k.event_id = i.event_id
      where (
          k.event_id is null
          or (
            select true
            from event_ids o
            where o.environment_id = k.environment_id and o.user_id = k.user_id and o.event_id = k.event_id
          ) is null
        )
        and (
          select true
          from events e
          where e.environment_id = i.environment_id
            and e.user_id = i.user_id
            and e.inserted_at = i.inserted_at
            and e.event_id = i.event_id
        ) is null
    )
    ${scope.keepKeys ? recorded(scope, batch) : sql``}
    ${planned === 0 ? sql`` : byNameAndDay(scope, planned)}
    select ${countedByKind} from added`;
}

const byNameAndDay = ({ loadId }: Scope, times: number) => sql`
  , planned as (
    insert into planned_events (load_id, event_name, day, events)
    select ${loadId}, event_name, day, ${times} * count(*)
    from (select event_name, (inserted_at at time zone 'UTC')::date as day from added) dated
    group by grouping sets ((event_name), (day))
  )`;

/**
 * Replaces the stored events that have the same given ids as the events of the batch. Must be
 * called only for events that this load has added. An event that retention has removed stays
 * removed.
 */
export async function replaceEvents(transaction: Transaction, batch: EventBatch): Promise<void> {
  const { db } = transaction;
  await copyIncomingEvents(transaction, batch);
  const { rows } = await sql<{ userId: string; eventId: string }>`
    delete from events e
    using incoming_event_ids i
    join event_ids o using (environment_id, user_id, event_id)
    where e.environment_id = o.environment_id
      and e.user_id = o.user_id
      and e.inserted_at = o.inserted_at
      and e.event_id = o.event_id
    returning e.user_id as "userId", e.event_id as "eventId"`.execute(db);
  if (rows.length === 0) return;
  const replaced = sql`(
    select *
    from unnest(${rows.map(({ userId }) => userId)}::text[], ${rows.map(({ eventId }) => eventId)}::text[])
  )`;
  await reportingPartitions(() =>
    sql`
        with moved as (
          update event_ids o
          set inserted_at = i.inserted_at
          from incoming_event_ids i
          where o.environment_id = i.environment_id
            and o.user_id = i.user_id
            and o.event_id = i.event_id
            and (i.user_id, i.event_id) in ${replaced}
        )
        insert into events (${sql.raw(columns)})
        select *
        from incoming_events
        where (user_id, event_id) in ${replaced}
        on conflict do nothing`.execute(db),
  );
}

const countedByKind = sql.join(
  eventKinds.map(
    (kind) => sql`count(*) filter (where event_type = ${sql.lit(kind)})::int as ${sql.id(kind)}`,
  ),
);

const isAdded = sql`(k.user_id, k.event_id) in (select user_id, event_id from added)`;

const recorded = (scope: Scope, batch: EventBatch) => sql`
  , recorded as (
    insert into load_chunk_keys (load_id, chunk_no, entity, written, unchanged)
    select
      ${scope.loadId},
      ${scope.chunkNo},
      'events',
      ${batch.contentHashes}::bigint[] || coalesce(array_agg(k.key_hash) filter (where ${isAdded}), '{}'),
      coalesce(array_agg(k.key_hash) filter (where not (${isAdded})), '{}')
    from incoming_event_ids k
    where k.key_hash is not null
  )`;

/**
 * Copies a batch into the temporary tables. Empties them first, because an earlier batch of the
 * same transaction may have left rows.
 */
async function copyIncomingEvents({ client }: Transaction, { text, ids }: EventBatch): Promise<void> {
  await client.query(`
    create temporary table if not exists incoming_events (
      environment_id integer,
      user_id text collate "C",
      event_id text collate "C",
      event_type text,
      event_name text collate "C",
      company_id text collate "C",
      source text,
      inserted_at timestamptz,
      metadata jsonb
    ) on commit delete rows;
    create temporary table if not exists incoming_event_ids (
      environment_id integer,
      user_id text collate "C",
      event_id text collate "C",
      inserted_at timestamptz,
      key_hash bigint
    ) on commit delete rows;
    delete from incoming_events;
    delete from incoming_event_ids`);
  await copy(client, `incoming_events (${columns})`, text);
  if (ids.length > 0) await copy(client, `incoming_event_ids (${idColumns}, key_hash)`, ids);
}

async function copy(client: pg.PoolClient, into: string, text: Buffer): Promise<void> {
  await reportingPartitions(() => copyText(client, into, text));
}

/**
 * Runs `work`. A partition of `events` may have expired since the transaction began.
 * @throws TransientError
 */
async function reportingPartitions<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isMissingPartition(error)) throw error;
    throw new TransientError('a partition of the events is gone', { cause: error });
  }
}
