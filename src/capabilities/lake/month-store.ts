import { sql } from 'kysely';
import { changedBy, type Database, firstRow, isTrue, rowsOf } from '../../postgres/database.ts';
import { eventTable, type Month } from '../../postgres/retention.ts';
import { removeDoomed } from '../../postgres/retirements.ts';

/** Maximum number of appends to a month before it is rewritten. */
export const LAKE_APPENDS = 48;
/** Minimum hours between two rewrites of a month from which events are removed. */
const LAKE_REWRITE_HOURS = 24;
/** Hours from the end of a month until it is rewritten. */
export const LAKE_SETTLE_HOURS = 24;

/*
 * Months of the lake whose events are still in `sluice.events`. A writer reads the month's row in
 * the same snapshot as the events. The writer commits with `settleMonth` or `releaseMonth`, which
 * return false if the revision has changed.
 */

export interface LakeMonth {
  readonly environmentId: number;
  readonly month: string;
}

export interface MonthState {
  readonly revision: number;
  /** `null` if there are no hot files. */
  readonly cursor: string | null;
  readonly removals: number;
  readonly appends: number;
  /**
   * True if the hot files may differ from `sluice.events`. They may contain other events, or lack
   * some.
   */
  readonly isStale: boolean;
  readonly isDue: boolean;
  readonly isRetiring: boolean;
}

/**
 * Lists the environments with events in `table`. If `isWhole`, includes environments that have only
 * hot files.
 */
export function listLakeMonths(
  db: Database,
  { table, month }: Month,
  isWhole: boolean,
): Promise<LakeMonth[]> {
  return rowsOf<LakeMonth>(db)`
    with recursive held (id) as (
      (select environment_id from ${eventTable(table)} order by 1 limit 1)
      union all
      select (select environment_id from ${eventTable(table)} where environment_id > id order by 1 limit 1)
      from held
      where id is not null
    )
    select id as "environmentId", ${month} as month from held where id is not null
    union
    select environment_id, ${month} from lake_months where ${isWhole} and month = ${month}::date
    order by 1`;
}

export function listOpenMonths(db: Database): Promise<LakeMonth[]> {
  return rowsOf<LakeMonth>(db)`
    select environment_id as "environmentId", month::text from lake_months order by 1, 2`;
}

export async function openMonth(db: Database, { environmentId, month }: LakeMonth): Promise<void> {
  await rowsOf(db)`
    insert into lake_months (environment_id, month) values (${environmentId}, ${month}::date)
    on conflict do nothing`;
}

export function readMonth(db: Database, { environmentId, month }: LakeMonth): Promise<MonthState | null> {
  return firstRow<MonthState>(db)`
    select
      revision, cursor, removals, appends, removals > written_removals as "isStale",
      appends >= ${LAKE_APPENDS}
        or removals > written_removals and written_at < now() - ${LAKE_REWRITE_HOURS} * interval '1 hour'
        or (appends > 0 or removals > written_removals) and written_at < over_at and over_at < now() as "isDue",
      exists (select 1 from event_retirements r where r.month = m.month and r.state <> 'removed') as "isRetiring"
    from lake_months m
    cross join lateral (
      select (month + interval '1 month') at time zone 'UTC' + ${LAKE_SETTLE_HOURS} * interval '1 hour' as over_at
    ) o
    where environment_id = ${environmentId} and month = ${month}::date`;
}

export async function settleMonth(
  db: Database,
  { environmentId, month }: LakeMonth,
  { revision, removals }: MonthState,
  { cursor, isReplaced }: { readonly cursor: string; readonly isReplaced: boolean },
): Promise<boolean> {
  const replaced = sql`appends = 0, written_removals = ${removals}, written_at = now()`;
  const changed = await changedBy(db)`
    update lake_months
    set revision = revision + 1, cursor = ${cursor}, ${isReplaced ? replaced : sql`appends = appends + 1`}
    where environment_id = ${environmentId} and month = ${month}::date and revision = ${revision}`;
  return changed === 1;
}

/** Forgets a month that has no events in `sluice.events`. */
export async function releaseMonth(
  db: Database,
  { environmentId, month }: LakeMonth,
  { revision }: MonthState,
): Promise<boolean> {
  const changed = await changedBy(db)`
    delete from lake_months
    where environment_id = ${environmentId} and month = ${month}::date and revision = ${revision}`;
  return changed === 1;
}

/** If `isStale`, the files may lack events that are still in the database. */
export async function recordErasure(
  db: Database,
  environmentId: number,
  months: readonly string[] | null,
  { isStale }: { readonly isStale: boolean },
): Promise<void> {
  await rowsOf(db)`
    update lake_months
    set revision = revision + 1, removals = removals + ${isStale ? 1 : 0}
    where environment_id = ${environmentId} and month = any(coalesce(${months && [...months]}::date[], array[month]))`;
}

/** `since` is a snapshot. */
export function hasEvents(
  db: Database,
  { environmentId, month }: LakeMonth,
  since: string,
): Promise<boolean> {
  return isTrue(db)`
    select exists (
      select 1
      from events
      where environment_id = ${environmentId}
        and inserted_at >= ${month}::timestamp at time zone 'UTC'
        and inserted_at < (${month}::timestamp + interval '1 month') at time zone 'UTC'
        and is_since(position, ${since}::pg_snapshot)
    )`;
}

/**
 * `replaced` excludes the hot files from later commits. `kept` makes these files the only copy of
 * their events.
 */
export async function leaveHot(
  db: Database,
  { environmentId, month }: LakeMonth,
  become: 'replaced' | 'kept',
): Promise<void> {
  await rowsOf(db)`
    update lake_files
    set ${become === 'kept' ? sql`is_hot = false` : sql`state = 'replaced'`}
    where environment_id = ${environmentId} and month = ${month}::date and is_hot and state = 'stored'`;
}

/** Microseconds since 1970. `to` is one microsecond after the last event. */
export async function readSpan(
  db: Database,
  { table }: Pick<Month, 'table'>,
  environmentId: number,
): Promise<{ readonly from: number; readonly to: number }> {
  const { from = 0, to = 0 } =
    (await firstRow<{ from: number; to: number }>(db)`
      select
        (extract(epoch from min(inserted_at)) * 1000000)::bigint as "from",
        (extract(epoch from max(inserted_at)) * 1000000)::bigint + 1 as "to"
      from ${eventTable(table)}
      where environment_id = ${environmentId}`) ?? {};
  return { from, to };
}

export async function removeRepeated(
  db: Database,
  { table }: Pick<Month, 'table'>,
  environmentId: number,
  [users, ids, micros]: readonly (readonly (string | null)[])[],
): Promise<void> {
  await rowsOf(db)`
    with doomed as materialized (
      select user_id, event_id, timestamptz 'epoch' + micros * interval '1 microsecond' as inserted_at
      from unnest(${users}::text[], ${ids}::text[], ${micros}::bigint[]) d (user_id, event_id, micros)
    ),
    ${removeDoomed(eventTable(table), environmentId)}
    select 1 from removed`;
}
