import type pg from 'pg';
import type { FailingSchedule, NeedCounts } from '../../domain/need.ts';
import { withTimeout } from '../pool.ts';

/* Counts what needs attention, from the ledger. */

/** The counts of one environment in which something may need attention. */
export interface EnvironmentNeeds {
  readonly environment: string;
  readonly counts: NeedCounts;
  /** Failing schedules that are not paused, including those that the file no longer has. */
  readonly failing: readonly FailingSchedule[];
}

const timeoutMs = 3_000;
/** The number of latest jobs of a kind that are searched for failures, so that the cost does not grow with what is kept. */
const failuresAmong = 10_000;

/*
 * Refused records come from loads_rejects_idx; those of an amendment still count for its parent. The last success of a schedule
 * is searched backwards from its latest run; few runs lie in between, since only one is due at a time.
 */
const statement = `
  select
    e.name as environment, "failedJobs", "failedJob", "refusedRecords", "refusedJobs", "refusedJob",
    "refusedInboxFiles", "inboxFilesWithRejects", "skippedRuns", "deadDeliveries", failing
  from environments e
  cross join lateral (
    select count(*) as "failedJobs", case when count(*) = 1 then min(job_id::text) end as "failedJob"
    from (
      ${latestEnds('loads')}
      union all
      ${latestEnds('exports')}
      union all
      ${latestEnds('deletions')}
    ) ended
    where status = 'failed' and ended_at > now() - interval '24 hours'
  ) of_jobs
  cross join lateral (
    select
      coalesce(sum(l.rows_rejected), 0)::bigint as "refusedRecords",
      count(*) as "refusedJobs",
      case when count(*) = 1 then min(l.job_id::text) end as "refusedJob",
      count(*) filter (where exists (
        select 1
        from inbox_files f
        where f.environment_id = e.environment_id and f.job_id = l.job_id and not f.is_duplicate
          and f.state = 'concluded' and l.origin = 'inbox'
      )) as "inboxFilesWithRejects"
    from loads l
    where l.environment_id = e.environment_id and l.status = 'completed' and l.rows_rejected > 0
      and not l.dry_run and l.amends is null
  ) of_rejects
  cross join lateral (
    select count(*) as "refusedInboxFiles"
    from inbox_files f
    where f.environment_id = e.environment_id and f.state = 'concluded' and f.outcome = 'failed'
      and f.job_id is null and f.concluded_at > now() - interval '24 hours'
  ) of_inbox
  cross join lateral (
    select count(*) as "skippedRuns"
    from schedule_runs r
    where r.environment_id = e.environment_id and r.status = 'skipped' and r.ended_at > now() - interval '24 hours'
  ) of_runs
  cross join lateral (
    select count(*) as "deadDeliveries"
    from notification_deliveries d
    join notification_events v on v.event_id = d.event_id
    where d.state = 'dead' and v.environment_id = e.environment_id
  ) of_deliveries
  cross join lateral (
    select coalesce(json_agg(json_build_object('name', name, 'since', since, 'reason', reason) order by since), '[]') as failing
    from (
      select s.schedule_name as name, min(r.begun_at) as since,
        (array_agg(r.reason order by r.due_at desc))[1] as reason
      from schedules s
      cross join lateral (
        select r.due_at, coalesce(r.started_at, r.due_at) as begun_at,
          coalesce(r.reason, t.last_error, r.reason_code) as reason
        from schedule_runs r
        left join tasks t on r.status = 'queued' and t.kind = 'run' and t.subject_id = r.run_id
        where r.environment_id = s.environment_id and r.schedule_name = s.schedule_name
          and (r.status = 'failed' or (r.status = 'queued' and t.last_error is not null))
          and r.due_at > coalesce(
            (
              select g.due_at
              from schedule_runs g
              where g.environment_id = s.environment_id and g.schedule_name = s.schedule_name
                and g.status in ('completed', 'completed_with_rejects', 'unchanged')
              order by g.due_at desc
              limit 1
            ),
            '-infinity'
          )
      ) r
      where s.environment_id = e.environment_id and s.paused_at is null
      group by s.schedule_name
    ) schedules
  ) of_schedules
  where $1::int is null or e.environment_id = $1
  order by e.name`;

function latestEnds(table: 'loads' | 'exports' | 'deletions'): string {
  return `(
        select job_id, status, ended_at
        from ${table}
        where environment_id = e.environment_id
        order by job_id desc
        limit ${failuresAmong}
      )`;
}

interface Row extends NeedCounts {
  readonly environment: string;
  readonly failing: readonly (Omit<FailingSchedule, 'since'> & { readonly since: string })[];
}

/** Reads the needs of one environment, or of all (`null`), sorted by name. */
export async function readNeeds(pool: pg.Pool, environmentId: number | null): Promise<EnvironmentNeeds[]> {
  const { rows } = await pool.query<Row>({ ...withTimeout(statement, timeoutMs), values: [environmentId] });
  return rows.map(({ environment, failing, ...counts }) => ({
    environment,
    counts,
    failing: failing.map((each) => ({ ...each, since: new Date(each.since) })),
  }));
}
