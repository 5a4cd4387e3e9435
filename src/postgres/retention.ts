import { type RawBuilder, sql } from 'kysely';
import type pg from 'pg';
import { type Database, onConnection, rowsOf } from './database.ts';
import { readFigure } from './pool.ts';

/**
 * Maximum wait for exports, because a month can be detached only while no export reads it. During
 * this wait, new exports wait, too.
 */
const EVENT_STORE_LOCK_MS = 3_000;

/** "RETN". */
const pruningLock = 0x5245544e;

export interface Month {
  readonly month: string;
  readonly table: string;
}

export interface HeldNames {
  readonly environmentId: number;
  readonly past: readonly string[];
  readonly kept: number;
}

export function eventTable(name: string): RawBuilder<unknown> {
  return sql`${sql.id('sluice', name)}`;
}

/**
 * Months in which all events are older than the shortest retention. `defaultDays` is
 * EVENT_RETENTION_DAYS.
 */
export function findOldMonths(db: Database, defaultDays: number): Promise<Month[]> {
  return rowsOf<Month>(db)`
    with shortest as (
      select min(days) as days
      from (select days from event_retention union all select ${defaultDays}::integer) all_days (days)
      where days > 0
    )
    select m.month::text, m."table"
    from ${months} m, shortest s
    where ${endOf(sql`m.month`)} <= now() - s.days * interval '1 day'
    order by m.month`;
}

export function listMonths(db: Database): Promise<Month[]> {
  return rowsOf<Month>(db)`select month::text, "table" from ${months} m order by month`;
}

const months = sql`(
  select to_date(substring(c.relname from 8), 'YYYY_MM') as month, c.relname as "table"
  from pg_inherits i
  join pg_class c on c.oid = i.inhrelid
  where i.inhparent = 'sluice.events'::regclass and c.relname ~ '^events_[0-9]{4}_[0-9]{2}$'
)`;

/**
 * For each environment, returns the event names whose retention has ended for the whole month, and
 * the number of its other event names. Skips from name to name in events_name_idx instead of
 * reading all events.
 */
export function readHeldNames(
  db: Database,
  { table, month }: Month,
  defaultDays: number,
): Promise<HeldNames[]> {
  return rowsOf<HeldNames>(db)`
    with recursive held as (
      (
        select environment_id, event_name
        from ${eventTable(table)}
        order by environment_id, event_name
        limit 1
      )
      union all
      select next.environment_id, next.event_name
      from held h
      cross join lateral (
        select e.environment_id, e.event_name
        from ${eventTable(table)} e
        where (e.environment_id, e.event_name) > (h.environment_id, h.event_name)
        order by e.environment_id, e.event_name
        limit 1
      ) next
    ),
    judged as (
      select
        h.environment_id,
        h.event_name,
        coalesce(named.days, others.days, ${defaultDays}::integer) as days
      from held h
      left join event_retention named
        on named.environment_id = h.environment_id and named.key = h.event_name
      left join event_retention others
        on others.environment_id = h.environment_id and others.key = '*'
    ),
    found as (
      select
        environment_id,
        event_name,
        days > 0 and ${endOf(sql`${month}::date`)} <= now() - days * interval '1 day' as is_past
      from judged
    )
    select
      environment_id as "environmentId",
      coalesce(array_agg(event_name) filter (where is_past), '{}') as past,
      count(*) filter (where not is_past) as kept
    from found
    group by environment_id
    order by environment_id`;
}

/** Returns the end of the month in UTC, independent of the session's time zone. */
function endOf(month: RawBuilder<unknown>): RawBuilder<Date> {
  return sql`((${month} + interval '1 month') at time zone 'UTC')`;
}

/**
 * Runs `work` under the lock for pruning. Returns `null` without running it if another process is
 * pruning this database.
 */
export async function withPruningLock<T>(pool: pg.Pool, work: () => Promise<T>): Promise<T | null> {
  return onConnection(pool, async (client, discard) => {
    const { rows } = await client.query<{ taken: boolean }>('select pg_try_advisory_lock($1) as taken', [
      pruningLock,
    ]);
    if (rows[0]?.taken !== true) return null;
    try {
      return await work();
    } finally {
      await client.query('select pg_advisory_unlock($1)', [pruningLock]).catch(discard);
    }
  });
}

export async function recordEventPruning(db: Database, work: string, error: string | null): Promise<void> {
  await rowsOf(db)`
    insert into event_prunings as known (work, ended_at, error, failing_since)
    values (${work}, now(), ${error}::text, case when ${error}::text is not null then now() end)
    on conflict (work) do update
    set
      ended_at = excluded.ended_at,
      error = excluded.error,
      failing_since = case when excluded.error is not null then coalesce(known.failing_since, excluded.ended_at) end`;
}

export interface EventRetention {
  readonly eventsRemoved: number;
  readonly monthsDropped: number;
  readonly prunedAt: Date | null;
  readonly error: string | null;
  readonly failingSince: Date | null;
}

const overview = `
  select r.*, p.ended_at as "prunedAt", p.error, p.failing_since as "failingSince"
  from (
    select
      coalesce(sum(events_removed), 0)::bigint as "eventsRemoved",
      count(*) filter (where is_whole and state = 'removed') as "monthsDropped"
    from sluice.event_retirements
  ) r
  left join sluice.event_prunings p on p.work = 'prune'`;

export function readEventRetention(watch: pg.Pool | pg.ClientBase): Promise<EventRetention> {
  return readFigure(watch, overview);
}

/** Blocks exports, which lock this table in row share mode, until the transaction ends. */
export async function lockEventStore(db: Database): Promise<void> {
  await setLockTimeout(db, EVENT_STORE_LOCK_MS);
  await sql`lock table event_retirements in exclusive mode`.execute(db);
}

export async function setLockTimeout(db: Database, ms: number): Promise<void> {
  await sql`select set_config('lock_timeout', ${`${ms}ms`}, true)`.execute(db);
}
