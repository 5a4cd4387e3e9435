import { type RawBuilder, sql } from 'kysely';
import type { Database } from '../database.ts';

/** A month of `sluice.events`. */
export interface Month {
  /** Its first day, `2026-03-01`. */
  readonly month: string;
  /** Of the partition; made by `sluice.ensure_events_partition`. */
  readonly table: string;
}

/** What a month holds of one environment, and whether that has outlived its retention. */
export interface HeldNames {
  readonly environmentId: number;
  readonly past: readonly string[];
  readonly kept: number;
}

/** A table of ours by its name. */
export function eventTable(name: string): RawBuilder<unknown> {
  return sql`${sql.id('sluice', name)}`;
}

/**
 * Months of which something may have outlived its retention: their last instant is past the shortest that is set
 * anywhere. `defaultDays` is EVENT_RETENTION_DAYS.
 */
export async function findOldMonths(db: Database, defaultDays: number): Promise<Month[]> {
  const { rows } = await sql<Month>`
    with shortest as (
      select min(days) as days
      from (select days from event_retention union all select ${defaultDays}::integer) all_days (days)
      where days > 0
    ),
    months as (
      select to_date(substring(c.relname from 8), 'YYYY_MM') as month, c.relname as "table"
      from pg_inherits i
      join pg_class c on c.oid = i.inhrelid
      where i.inhparent = 'sluice.events'::regclass and c.relname ~ '^events_[0-9]{4}_[0-9]{2}$'
    )
    select m.month::text, m."table"
    from months m, shortest s
    where ${endOf(sql`m.month`)} <= now() - s.days * interval '1 day'
    order by m.month`.execute(db);
  return rows;
}

/**
 * Which events of a month have outlived their retention, by environment. Names are found by stepping from one to the next
 * in events_name_idx: some tens of microseconds each, however many events the month has.
 */
export async function readHeldNames(
  db: Database,
  { table, month }: Month,
  defaultDays: number,
): Promise<HeldNames[]> {
  const events = eventTable(table);
  const { rows } = await sql<HeldNames>`
    with recursive held as (
      (
        select environment_id, event_name
        from ${events}
        order by environment_id, event_name
        limit 1
      )
      union all
      select next.environment_id, next.event_name
      from held h
      cross join lateral (
        select e.environment_id, e.event_name
        from ${events} e
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
    order by environment_id`.execute(db);
  return rows;
}

/** How many events of a month have outlived their retention. */
export async function countPast(db: Database, { table }: Month, held: readonly HeldNames[]): Promise<number> {
  let count = 0;
  for (const { environmentId, past } of held) {
    const { rows } = await sql<{ count: number }>`
      select count(*) as count
      from ${eventTable(table)}
      where environment_id = ${environmentId} and event_name = any(${[...past]}::text[])`.execute(db);
    count += rows[0]?.count ?? 0;
  }
  return count;
}

/** The instant at which a month is over, in UTC whatever the session's zone. */
function endOf(month: RawBuilder<unknown>): RawBuilder<Date> {
  return sql`((${month} + interval '1 month') at time zone 'UTC')`;
}
