import type pg from 'pg';
import type { Report } from '../../api/report.ts';
import { MAX_REPORT_ROWS } from '../../domain/limits.ts';

/** A range of time: `from` included, `to` excluded; null: no bound. */
export interface ReportRange {
  readonly from: string | null;
  readonly to: string | null;
}

const inRange = `environment_id = $1
  and inserted_at >= coalesce($2::timestamptz, '-infinity')
  and inserted_at < coalesce($3::timestamptz, 'infinity')`;

/**
 * Lets PostgreSQL scan in parallel. It takes each event for a group of its own, as it has no statistics of days, and so expects all of them
 * to pass from process to process.
 */
const inParallel = 'set local parallel_tuple_cost = 0; set local parallel_setup_cost = 0';

/** The question in `cold_counts` under which are the users of events; the names of a day's events are under its number since 1970. */
export const usersOfReport = -(2 ** 31);

/** One scan, in parallel; what comes of it is small. The day is rounded as a time, in half the time that a date takes. */
const eventCounts = `
  with stored as materialized (
    select event_name, date_bin('1 day', inserted_at, '2000-01-01 00:00Z') as bin, count(*) as events
    from sluice.events
    where ${inRange}
    group by 1, 2
  ),
  counted as materialized (
    select event_name, bin, sum(events)::bigint as events
    from (
      select * from stored
      union all
      select key, timestamptz 'epoch' + question * interval '1 day', events
      from cold_counts
      where question <> ${usersOfReport}
    ) e
    group by 1, 2
  ),
  named as (select event_name, sum(events)::bigint as events from counted group by 1)
  select
    (select coalesce(sum(events), 0)::bigint from counted) as events,
    (select count(*) from counted) <= $4 as is_complete,
    array(
      select json_build_object('event_name', event_name, 'events', events)
      from named order by named.events desc, event_name limit $4
    ) as event_names,
    array(
      select json_build_object('day', (bin at time zone 'UTC')::date, 'event_name', event_name, 'events', events)
      from counted order by bin, event_name limit $4
    ) as days`;

/** Users of events come from the index of events by user. Events whose alias is still being joined count as those of the person. */
const userCounts = `
  with ids as materialized (
    select distinct user_id from sluice.events where ${inRange}
    union
    select key from cold_counts where question = ${usersOfReport}
  ),
  actors as materialized (
    select distinct coalesce(a.user_id, ids.user_id) as user_id
    from ids
    left join sluice.aliases a on a.environment_id = $1 and a.alias = ids.user_id
  )
  select
    (select count(*) from actors) as with_events,
    (
      select count(*)
      from actors
      where not exists (
        select 1 from sluice.users u where u.environment_id = $1 and u.user_id = actors.user_id
      )
    ) as without_profile`;

const profileCounts = `
  select
    count(*) as profiles,
    count(company_id) as with_company,
    count(*) - count(company_id) as without_company,
    (select count(*) from sluice.companies where environment_id = $1) as companies
  from sluice.users
  where environment_id = $1`;

/** Counts what an environment has: what `cold_counts` holds, and the events that are stored from `from` on. The statements are to be of one snapshot. */
export async function readReport(
  client: pg.ClientBase,
  environmentId: number,
  { from, to }: ReportRange,
): Promise<Report> {
  const range = [environmentId, from, to];
  await client.query(inParallel);
  const [events] = (await client.query(eventCounts, [...range, MAX_REPORT_ROWS])).rows;
  const [users] = (await client.query(userCounts, range)).rows;
  const [{ companies, ...profiles }] = (await client.query(profileCounts, [environmentId])).rows;
  return { ...events, users: { ...profiles, ...users }, companies };
}
