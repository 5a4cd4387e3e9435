import { type RawBuilder, sql } from 'kysely';
import type pg from 'pg';
import { ConflictError } from '../base/errors.ts';
import { nextOf, walkPages } from '../base/pages.ts';
import { instantText } from './columns.ts';
import { changedBy, countOf, type Database, findValue, inTransaction, rowOf, rowsOf } from './database.ts';
import {
  eventTable,
  type HeldNames,
  lockEventStore,
  type Month,
  readHeldNames,
  setLockTimeout,
} from './retention.ts';

const RETIREMENT_BATCH_ROWS = 5_000;
/** Maximum wait for other transactions on the events. New transactions are blocked meanwhile. */
const EVENTS_LOCK_MS = 200;

// Retention removes events from `sluice.events` a month at a time, in steps that can be resumed
// after a crash. The diagram shows how a whole partition or single rows become removed:
//
// (partition) ── retireMonth ──► retired ── archive ──► archived ── forgetIds, dropTable ─► removed
// (rows)      ── moveEvents ───►    │                                        ▲
//                                   └────────── nothing is archived ─────────┘
//
// Exports and lists do not contain retired events, because they read only `sluice.events`.

export interface Retirement {
  readonly retirementId: number;
  readonly month: string;
  readonly table: string;
  readonly archives: boolean;
  readonly isWhole: boolean;
  readonly state: 'retired' | 'archived';
}

const columns = sql`retirement_id as "retirementId", month::text, table_name as "table", archives,
  is_whole as "isWhole", state`;

export function findRetirements(db: Database): Promise<Retirement[]> {
  return rowsOf<Retirement>(db)`
    select ${columns}
    from event_retirements
    where state <> 'removed'
    order by retirement_id`;
}

/**
 * Detaches a month from `sluice.events`, or returns `null` if some events must be kept. Waits a
 * limited time for other transactions on the events, because new transactions are blocked
 * meanwhile.
 * @throws 55P03 if the limit is reached
 */
export async function retireMonth(
  pool: pg.Pool,
  month: Month,
  { defaultDays, archives }: { readonly defaultDays: number; readonly archives: boolean },
): Promise<Retirement | null> {
  try {
    return await inTransaction(pool, async ({ db }) => {
      await lockEventStore(db);
      await setLockTimeout(db, EVENTS_LOCK_MS);
      await sql`alter table events detach partition ${eventTable(month.table)}`.execute(db);
      // Nobody can add events now, so this query finds the events that were added after the
      // caller's check.
      const names = await readHeldNames(db, month, defaultDays);
      if (names.some(({ kept }) => kept > 0)) throw new ConflictError('an event came that is kept');
      await sql`select note_all_event_removals()`.execute(db);
      const retirement = await insertRetirement(db, { month: month.month, archives, isWhole: true });
      await sql`alter table ${eventTable(month.table)} rename to ${sql.id(retirement.table)}`.execute(db);
      return retirement;
    });
  } catch (error) {
    if (error instanceof ConflictError) return null;
    throw error;
  }
}

export async function openRetirement(pool: pg.Pool, month: string): Promise<Retirement> {
  return inTransaction(pool, async ({ db }) => {
    const retirement = await insertRetirement(db, { month, archives: true, isWhole: false });
    await sql`create table ${eventTable(retirement.table)} (like events including all)`.execute(db);
    return retirement;
  });
}

export async function moveEvents(
  pool: pg.Pool,
  { table }: Month,
  { environmentId, past }: HeldNames,
  to: Retirement,
): Promise<number> {
  return inTransaction(pool, async ({ db }) => {
    if (!(await raiseRevision(db, to.retirementId))) throw new Error('another process has the retirement');
    return countOf(db)`
      with doomed as materialized (${pastEvents(table, environmentId, past)}),
      moved as (
        delete from ${eventTable(table)} e
        using doomed d
        where e.environment_id = ${environmentId} and ${isSameEvent}
        returning e.*
      ),
      kept as (
        insert into ${eventTable(to.table)}
        select * from moved
        returning 1
      )
      select count(*) as moved
      from kept`;
  });
}

export function deleteEvents(
  db: Database,
  { table }: Month,
  { environmentId, past }: HeldNames,
): Promise<number> {
  return countOf(db)`
    with doomed as materialized (${pastEvents(table, environmentId, past)}),
    ${removeDoomed(eventTable(table), environmentId)}
    select count(*) as removed
    from removed`;
}

export async function recordDeleted(db: Database, month: string, events: number): Promise<void> {
  await sql`
    insert into event_retirements (month, archives, is_whole, state, events_removed, ended_at)
    values (${month}::date, false, false, 'removed', ${events}, now())`.execute(db);
}

interface Key {
  readonly environmentId: number;
  readonly insertedAt: string;
  readonly eventId: string;
  readonly userId: string;
}

/**
 * Begins an attempt and returns its number. From now on, writes of earlier attempts are refused.
 */
export function beginArchiving(db: Database, { retirementId }: Retirement): Promise<number> {
  return countOf(db)`
    update event_retirements
    set attempt = attempt + 1
    where retirement_id = ${retirementId}
    returning attempt`;
}

export function readRevision(db: Database, { retirementId }: Retirement): Promise<number> {
  return countOf(db)`select revision from event_retirements where retirement_id = ${retirementId}`;
}

/** Marks the table as archived. Returns false if the table has changed since the attempt began. */
export async function markArchived(
  db: Database,
  { retirementId }: Retirement,
  { attempt, revision }: { readonly attempt: number; readonly revision: number },
): Promise<boolean> {
  const changed = await changedBy(db)`
    update event_retirements
    set state = 'archived'
    where retirement_id = ${retirementId} and state = 'retired' and attempt = ${attempt} and revision = ${revision}`;
  return changed > 0;
}

/**
 * Returns the end of the last month with removed events, or `null` if there is none. All events
 * after this time are stored.
 */
export function findKeptFrom(db: Database): Promise<string | null> {
  return findValue<string | null>(db)`
    select ${instantText(sql`(max(month) + interval '1 month') at time zone 'UTC'`)} as "keptFrom"
    from event_retirements`;
}

export async function forgetIds(db: Database, { retirementId, table }: Retirement): Promise<number> {
  const readPage = async (after: Key | null) => {
    const beyond: ReturnType<typeof sql> =
      after === null
        ? sql``
        : sql`where (environment_id, inserted_at, event_id, user_id)
            > (${after.environmentId}, ${after.insertedAt}::timestamptz, ${after.eventId}, ${after.userId})`;
    const { rows } = await sql<Key & { seen: number }>`
      with held as materialized (
        -- The locking order of all writers of events, which prevents a deadlock with deletions.
        select 1 from event_retirements where retirement_id = ${retirementId} for update
      ),
      batch as materialized (
        select environment_id, inserted_at, event_id, user_id
        from ${eventTable(table)}
        cross join held
        ${beyond}
        order by environment_id, inserted_at, event_id, user_id
        limit ${RETIREMENT_BATCH_ROWS}
      ),
      ${forgetIdsOf('batch')}
      select
        environment_id as "environmentId",
        inserted_at::text as "insertedAt",
        event_id as "eventId",
        user_id as "userId",
        (select count(*) from batch) as seen
      from batch
      order by environment_id desc, inserted_at desc, event_id desc, user_id desc
      limit 1`.execute(db);
    const seen = rows[0]?.seen ?? 0;
    return { seen, next: nextOf<Key, Key>(rows, seen === RETIREMENT_BATCH_ROWS, (last) => last) };
  };
  let events = 0;
  for await (const { seen } of walkPages(null, readPage)) events += seen;
  return events;
}

/**
 * Drops an existing table once all exports of it have ended. The wait for the exports is limited.
 * @throws 55P03 if the limit is reached
 */
export async function dropTable(
  pool: pg.Pool,
  { retirementId, table, archives }: Retirement,
  events: number,
): Promise<void> {
  await inTransaction(pool, async ({ db }) => {
    await lockEventStore(db);
    const state = archives ? 'archived' : 'retired';
    const changed = await changedBy(db)`
      update event_retirements
      set state = 'removed', ended_at = now(), events_removed = ${events}
      where retirement_id = ${retirementId} and state = ${state}`;
    if (changed > 0) await sql`drop table ${eventTable(table)}`.execute(db);
  });
}

async function insertRetirement(
  db: Database,
  { month, archives, isWhole }: Pick<Retirement, 'month' | 'archives' | 'isWhole'>,
): Promise<Retirement> {
  return rowOf<Retirement>(db)`
    with numbered as (
      select nextval(pg_get_serial_sequence('sluice.event_retirements', 'retirement_id')) as id
    )
    insert into event_retirements (retirement_id, month, table_name, archives, is_whole, state)
    overriding system value
    select id, ${month}::date, 'retired_events_' || id, ${archives}, ${isWhole}, 'retired'
    from numbered
    returning ${columns}`;
}

/**
 * CTEs (the first is `removed`) that delete the events in `doomed` and the ids that callers gave
 * these events.
 */
export function removeDoomed(table: RawBuilder<unknown>, environmentId: number): RawBuilder<unknown> {
  return sql`removed as (
      delete from ${table} e
      using doomed d
      where e.environment_id = ${environmentId} and ${isSameEvent}
      returning e.environment_id, e.user_id, e.event_id, e.inserted_at
    ),
    ${forgetIdsOf('removed')}`;
}

function forgetIdsOf(query: string): RawBuilder<unknown> {
  return sql`forgotten as (
      delete from event_ids k
      using ${sql.ref(query)} r
      where k.environment_id = r.environment_id
        and k.user_id = r.user_id
        and k.event_id = r.event_id
        and k.inserted_at = r.inserted_at
    )`;
}

export const isSameEvent = sql`e.user_id = d.user_id and e.inserted_at = d.inserted_at and e.event_id = d.event_id`;

function pastEvents(table: string, environmentId: number, names: readonly string[]) {
  return sql`
    select user_id, inserted_at, event_id
    from ${eventTable(table)}
    where environment_id = ${environmentId} and event_name = any(${[...names]}::text[])
    limit ${RETIREMENT_BATCH_ROWS}`;
}

/**
 * Calls `work`, which returns how many events it changed, for each table until `limit` is reached.
 * If the archive of a changed table is being written, it becomes invalid.
 */
export async function inEventTables(
  db: Database,
  limit: number,
  work: (table: RawBuilder<unknown>, limit: number) => Promise<number>,
): Promise<number> {
  // Locks retirements before events, as writers that move events do. The retirements are listed
  // again below, because more of them may have begun.
  await lockTables(db, 'retired');
  let changed = await work(sql.table('events'), limit);
  for (const { retirementId, table } of await lockTables(db, 'retired')) {
    if (changed >= limit) break;
    const changedHere = await work(eventTable(table), limit - changed);
    if (changedHere > 0) await raiseRevision(db, retirementId);
    changed += changedHere;
  }
  return changed;
}

/** Locks the retirements, so that no table is removed before the transaction ends. */
export function lockTables(
  db: Database,
  state: Retirement['state'],
): Promise<{ retirementId: number; table: string }[]> {
  return rowsOf<{ retirementId: number; table: string }>(db)`
    select retirement_id as "retirementId", table_name as "table"
    from event_retirements
    where state = ${state}
    order by retirement_id
    for update`;
}

/** Invalidates an archive being written. Returns false if the table is no longer `retired`. */
async function raiseRevision(db: Database, retirementId: number): Promise<boolean> {
  const changed = await changedBy(db)`
    update event_retirements set revision = revision + 1 where retirement_id = ${retirementId} and state = 'retired'`;
  return changed > 0;
}
