import type pg from 'pg';
import { SHOWN_FAILURES } from '../../base/limits.ts';
import { plural } from '../../base/wording.ts';
import { readFigure, readFigures } from '../../postgres/pool.ts';
import type { Gauges } from '../../telemetry/gauges.ts';
import { type Unfinished, unfinished } from '../../telemetry/health/store.ts';
import type { Counted, Failure, FigureSeam, NeedOf } from '../../telemetry/seam.ts';

interface Backlog {
  /** A run also counts as queued while it waits for another run or a retry. */
  readonly runs: Unfinished;
  readonly waitingRuns: number;
}

const backlogStatement = `
  select
    ${unfinished("status = 'queued' and lease_until is null", 'lease_until is not null', 'created_at')} as runs,
    count(*) filter (where status = 'waiting') as "waitingRuns"
  from schedule_runs
  left join tasks on kind = 'run' and subject_id = run_id
  where status in ('queued', 'waiting')`;

const ofBacklog: Gauges<Backlog> = {
  sluice_schedule_runs: [
    'Unfinished runs of schedules by status: queued, running, waiting (for their jobs).',
    (of) => ({ queued: of.runs.queued, running: of.runs.processing, waiting: of.waitingRuns }),
    'status',
  ],
  sluice_oldest_queued_schedule_run_seconds: [
    'Seconds since the longest queued run was made; 0 if none is queued.',
    (of) => of.runs.oldestSeconds,
  ],
};

const MAX_SCHEDULE_LABELS = 500;
/** Maximum number of a schedule's runs that are searched for its last success. */
const runsLookedAt = 1_000;

interface ScheduleFigures {
  readonly name: string;
  /**
   * Seconds since the last success. If none of the searched runs succeeded, seconds since the
   * oldest of these runs was due.
   */
  readonly secondsSinceSuccess: number;
  readonly failing: boolean;
}

const runEnds = ['completed', 'completed_with_rejects', 'unchanged', 'skipped', 'failed'] as const;
type RecentRuns = Readonly<Record<(typeof runEnds)[number], number>>;

interface SchedulesOverview {
  readonly schedules: readonly ScheduleFigures[];
  readonly recent: RecentRuns;
}

const schedulesStatement = `
  with fared as (
    select
      s.schedule_name,
      max(r.ended_at) filter (where r.status in ('completed', 'completed_with_rejects', 'unchanged')) as succeeded_at,
      min(r.due_at) as first_due_at,
      (array_agg(r.status order by r.ended_at desc) filter (where r.status not in ('queued', 'waiting', 'skipped')))[1]
        as last_status
    from schedules s
    cross join lateral (
      select status, due_at, ended_at
      from schedule_runs
      where environment_id = s.environment_id and schedule_name = s.schedule_name
      order by due_at desc
      limit ${runsLookedAt}
    ) r
    where s.definition is not null
    group by s.environment_id, s.schedule_name
  )
  select
    schedule_name as name,
    greatest(extract(epoch from now() - min(coalesce(succeeded_at, first_due_at))), 0)::float8 as "secondsSinceSuccess",
    coalesce(bool_or(last_status = 'failed'), false) as failing
  from fared
  group by schedule_name
  order by schedule_name
  limit ${MAX_SCHEDULE_LABELS}`;

const recentStatement = `
  select ${runEnds.map((end) => `count(*) filter (where status = '${end}') as ${end}`)}
  from schedule_runs
  where ended_at > now() - interval '24 hours'`;

async function readSchedules(watch: pg.Pool): Promise<SchedulesOverview> {
  const schedules = await readFigures<ScheduleFigures>(watch, schedulesStatement);
  return { schedules, recent: await readFigure<RecentRuns>(watch, recentStatement) };
}

const ofSchedules: Gauges<SchedulesOverview> = {
  sluice_schedule_runs_last_day: [
    'Runs of schedules that ended within 24 hours, by how they ended.',
    ({ recent }) => ({ ...recent }),
    'status',
  ],
  sluice_schedule_seconds_since_success: [
    'Seconds since a run of the schedule last ended without failing; if none ever did, since its first was due.',
    ({ schedules }) =>
      schedules.map(({ name, secondsSinceSuccess }) => [{ schedule: name }, secondsSinceSuccess]),
    'schedule',
  ],
  sluice_schedule_failing: [
    '1 if the latest run of a schedule failed, without those that were skipped.',
    ({ schedules }) => schedules.map(({ name, failing }) => [{ schedule: name }, failing ? 1 : 0]),
    'schedule',
  ],
};

interface Failing {
  readonly environmentId: number;
  readonly names: readonly string[];
  readonly since: Date;
  readonly reason: string;
}

/*
 * Searches from the newest run backwards, because the last success was usually not long ago.
 */
const failingStatement = `
  select environment_id as "environmentId", array_agg(schedule_name order by since) as names, min(since) as since,
    (array_agg(reason order by since))[1] as reason
  from (
    select s.environment_id, s.schedule_name, min(r.begun_at) as since, (array_agg(r.reason order by r.due_at desc))[1] as reason
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
    where ($1::int is null or s.environment_id = $1) and s.paused_at is null
      and coalesce((s.definition ->> 'enabled')::boolean, true) and s.definition is not null
    group by s.environment_id, s.schedule_name
  ) failing
  group by environment_id`;

const skippedStatement = `
  select environment_id as "environmentId", count(*) as count
  from schedule_runs
  where ($1::int is null or environment_id = $1) and status = 'skipped' and ended_at > now() - interval '24 hours'
  group by environment_id`;

async function findNeeds(pool: pg.Pool, environmentId: number | null): Promise<NeedOf[]> {
  const failing = await readFigures<Failing>(pool, failingStatement, [environmentId]);
  const skipped = await readFigures<Counted>(pool, skippedStatement, [environmentId]);
  return [
    ...failing.map(describeFailing),
    ...skipped.map((each): NeedOf => {
      const runs = plural(each.count, 'scheduled run was', 'scheduled runs were');
      return { ...each, kind: 'runs_skipped', says: `${runs} skipped in the last 24 hours` };
    }),
  ];
}

const reasonCharacters = 120;
const shownNames = 3;

function describeFailing({ environmentId, names, since, reason }: Failing): NeedOf {
  const need = { environmentId, kind: 'schedules_failing' as const, count: names.length, since };
  const [subject = '', ...others] = names;
  if (others.length === 0) {
    const length = describeLength(Date.now() - since.getTime());
    const why = reason.slice(0, reasonCharacters).toWellFormed();
    return { ...need, subject, says: `Schedule ${subject} has failed for ${length}: ${why}` };
  }
  const more = names.length > shownNames ? ', …' : '';
  const first = names.slice(0, shownNames).join(', ');
  return { ...need, says: `${plural(names.length, 'schedule')} fail: ${first}${more}` };
}

const minuteMs = 60_000;

function describeLength(ms: number): string {
  const minutes = Math.floor(ms / minuteMs);
  if (minutes < 1) return 'less than a minute';
  if (minutes < 120) return plural(minutes, 'minute');
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? plural(hours, 'hour') : plural(Math.floor(hours / 24), 'day');
}

/*
 * Lists only runs that failed before they had a job. Failed jobs are listed elsewhere.
 */
const failuresStatement = `
  select e.name as environment, null as "jobId", r.schedule_name as schedule, 'schedule' as type,
    r.ended_at as "endedAt", r.reason_code as code, coalesce(r.reason, r.reason_code) as message
  from environments e
  cross join lateral (
    select run_id, schedule_name, ended_at, reason_code, reason
    from schedule_runs r
    where environment_id = e.environment_id and status = 'failed'
      and not exists (select 1 from schedule_run_items i where i.run_id = r.run_id and i.job_id is not null)
    order by run_id desc
    limit ${runsLookedAt}
  ) r
  order by r.ended_at desc
  limit ${SHOWN_FAILURES}`;

export const figures: FigureSeam = {
  backlog: { read: (watch) => readFigure<Backlog>(watch, backlogStatement), gauges: ofBacklog },
  totals: { read: readSchedules, gauges: ofSchedules },
  failures: (watch) => readFigures<Failure>(watch, failuresStatement),
  needs: findNeeds,
};
