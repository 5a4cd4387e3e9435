/** The SQL of what a user or company did, summed up: events by day and by name, users of a company. */
import { sql } from 'kysely';
import { type Entity, idColumn } from '../../domain/entity.ts';
import { inputError } from '../../domain/errors.ts';
import { MAX_ACTIVITY_NAMES, MAX_COUNTED_EVENTS, MAX_COUNTED_USERS } from '../../domain/limits.ts';
import type { Database } from '../database.ts';
import { isUnknownName } from '../sqlstate.ts';
import { instantText } from './read-profiles.ts';

export interface Activity {
  /** The latest MAX_COUNTED_EVENTS at most; all numbers are of these. */
  readonly events: number;
  readonly isComplete: boolean;
  readonly firstAt: string | null;
  readonly lastAt: string | null;
  /** Days on which something happened, the oldest first. */
  readonly days: readonly { readonly day: string; readonly events: number }[];
  /** The most frequent first. */
  readonly names: readonly {
    readonly event_name: string;
    readonly events: number;
    readonly last_at: string;
  }[];
}

export interface ActivityQuery {
  readonly id: string;
  /** Of which days the events are shown by day: those that begin after so many days before now. */
  readonly days: number;
  /** Whose days they are. */
  readonly timeZone: string;
}

/** By events_user_idx or events_company_idx. @throws InputError `invalid_field` for a time zone that the database does not know. */
export async function readActivity(
  db: Database,
  entity: Entity,
  environmentId: number,
  { id, days, timeZone }: ActivityQuery,
): Promise<Activity> {
  const found = sql<Activity>`
    with counted as materialized (
      select inserted_at, event_name, row_number() over (order by inserted_at desc) as place
      from events
      where environment_id = ${environmentId} and ${sql.ref(idColumn[entity])} = ${id}
      order by inserted_at desc
      limit ${MAX_COUNTED_EVENTS + 1}
    ),
    kept as (select * from counted where place <= ${MAX_COUNTED_EVENTS}),
    by_day as (
      select to_char(inserted_at at time zone ${timeZone}, 'YYYY-MM-DD') as day, count(*) as events
      from kept
      where (inserted_at at time zone ${timeZone})::date > (now() at time zone ${timeZone})::date - ${days}::int
      group by 1
    ),
    by_name as (
      select event_name, count(*) as events, ${instantText(sql`max(inserted_at)`)} as last_at
      from kept
      group by event_name
      order by events desc, event_name
      limit ${MAX_ACTIVITY_NAMES}
    )
    select
      (select count(*) from kept) as events,
      (select count(*) from counted) <= ${MAX_COUNTED_EVENTS} as "isComplete",
      (select ${instantText(sql`min(inserted_at)`)} from kept) as "firstAt",
      (select ${instantText(sql`max(inserted_at)`)} from kept) as "lastAt",
      (select coalesce(json_agg(d order by d.day), '[]') from by_day d) as days,
      (select coalesce(json_agg(n order by n.events desc, n.event_name), '[]') from by_name n) as names`;
  const { rows } = await found.execute(db).catch((error: unknown) => {
    if (!isUnknownName(error)) throw error;
    throw inputError('invalid_field', 'The database knows no such time zone', 'time_zone');
  });
  const [row] = rows;
  if (row === undefined) throw new Error('a row was expected');
  return row;
}

/** Users who belong to a company now, MAX_COUNTED_USERS at most. */
export async function countUsersOf(db: Database, environmentId: number, companyId: string): Promise<number> {
  const { rows } = await sql<{ users: number }>`
    select count(*) as users
    from (
      select 1
      from users
      where environment_id = ${environmentId} and company_id = ${companyId}
      limit ${MAX_COUNTED_USERS}
    ) of_company`.execute(db);
  return rows[0]?.users ?? 0;
}
