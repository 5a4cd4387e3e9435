import type pg from 'pg';
import { MAX_SCHEDULES } from '../../domain/limits.ts';
import { withTimeout } from '../watch-pool.ts';

const timeoutMs = 5_000;
/** Among so many of the latest runs of each schedule its last success is looked for: it must not cost more the more is kept. */
const runsLookedAt = 1_000;
/** Workers note every half minute that they see to a schedule; one that falls this far behind the others is in no file any more. */
const forgottenAfterMinutes = 10;

/** How a schedule fares; environments that have one of the same name are taken together. */
export interface ScheduleFigures {
  readonly name: string;
  /** Since the last run that did not fail ended. If none is found, since the first one looked at was due: it is at least as long. */
  readonly secondsSinceSuccess: number;
  /** Whether the last run that ended, and was not skipped, failed. */
  readonly failing: boolean;
}

/** Runs of the last 24 hours, of all schedules, by how they ended. */
export type RecentRuns = Readonly<
  Record<'completed' | 'completed_with_rejects' | 'unchanged' | 'skipped' | 'failed', number>
>;

export interface SchedulesOverview {
  /** Those that workers see to and that have had a run. */
  readonly schedules: readonly ScheduleFigures[];
  readonly recent: RecentRuns;
}

const schedulesStatement = `
  with in_force as (
    select environment_id, schedule_name
    from schedules
    where considered_until > (
      select max(considered_until) - interval '${forgottenAfterMinutes} min' from schedules
    )
  ),
  fared as (
    select
      s.schedule_name,
      max(r.ended_at) filter (where r.status in ('completed', 'completed_with_rejects', 'unchanged')) as succeeded_at,
      min(r.due_at) as first_due_at,
      (array_agg(r.status order by r.ended_at desc) filter (where r.status not in ('queued', 'running', 'waiting', 'skipped')))[1]
        as last_status
    from in_force s
    cross join lateral (
      select status, due_at, ended_at
      from schedule_runs
      where environment_id = s.environment_id and schedule_name = s.schedule_name
      order by due_at desc
      limit ${runsLookedAt}
    ) r
    group by s.environment_id, s.schedule_name
  )
  select
    schedule_name as name,
    greatest(extract(epoch from now() - min(coalesce(succeeded_at, first_due_at))), 0)::float8 as "secondsSinceSuccess",
    coalesce(bool_or(last_status = 'failed'), false) as failing
  from fared
  group by schedule_name
  order by schedule_name
  limit ${MAX_SCHEDULES}`;

/* Read through schedule_runs_ended_idx. */
const recentStatement = `
  select
    count(*) filter (where status = 'completed') as completed,
    count(*) filter (where status = 'completed_with_rejects') as completed_with_rejects,
    count(*) filter (where status = 'unchanged') as unchanged,
    count(*) filter (where status = 'skipped') as skipped,
    count(*) filter (where status = 'failed') as failed
  from schedule_runs
  where ended_at > now() - interval '24 hours'`;

export async function readSchedules(watch: pg.Pool): Promise<SchedulesOverview> {
  const schedules = await watch.query<ScheduleFigures>(withTimeout(schedulesStatement, timeoutMs));
  const { rows } = await watch.query<RecentRuns>(withTimeout(recentStatement, timeoutMs));
  const [recent] = rows;
  if (recent === undefined) throw new Error('a row was expected');
  return { schedules: schedules.rows, recent };
}
