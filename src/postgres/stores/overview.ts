import { sql } from 'kysely';
import type pg from 'pg';
import {
  KEPT_RATE_MINUTES,
  RECOUNTED_LOADS,
  SHOWN_FAILING_TASKS,
  SHOWN_LANE_JOBS,
} from '../../domain/limits.ts';
import type { Database } from '../database.ts';
import { readFigures } from '../pool.ts';

/* The work that runs and waits: in all environments for `sluice status`, in one for its overview. */

/** The time over which the rate of a running load is measured. */
const rateSeconds = 30;
/** The latest jobs of an environment that are searched for failures, so that the cost does not grow with what is kept. */
const failuresAmong = 1_000;
const failuresShown = 5;
const retriesShown = 5;

/** The state of an environment's lane, which runs one load or deletion at a time, in the order of acceptance. */
export interface LaneOverview {
  readonly environment: string;
  /** `null`: nothing runs. */
  readonly running: LaneJob | null;
  readonly waiting: number;
  /** The seconds since the longest waiting was accepted; `null` if none waits. */
  readonly oldestWaitingSeconds: number | null;
}

export interface LaneJob {
  readonly jobId: string;
  readonly type: string;
  /** Records of a load, ids of a deletion. */
  readonly done: number;
  readonly total: number;
  /** The rate of a load over its last half minute; `null` for a deletion. */
  readonly rowsPerSecond: number | null;
  readonly runningSeconds: number;
}

export interface RunningExport {
  readonly environment: string;
  readonly jobId: string;
  readonly rows: number;
  readonly bytes: number;
  readonly runningSeconds: number;
}

export interface Failure {
  readonly environment: string;
  /** `null`: a schedule's run that failed before there was a job. */
  readonly jobId: string | null;
  /** `null` for all others. */
  readonly schedule: string | null;
  readonly type: string;
  readonly endedAt: Date;
  readonly code: string;
  readonly message: string;
}

/** A job under way whose last try ran into something; it goes on trying. */
export interface Retry {
  readonly environment: string;
  readonly jobId: string;
  readonly type: string;
  readonly lastError: string;
}

/** Lists the environments in which something runs or waits, the longest waiting first. */
export async function readLanes(watch: pg.Pool): Promise<LaneOverview[]> {
  type Row = Omit<LaneJob, 'jobId'> & Omit<LaneOverview, 'running'> & { readonly jobId: string | null };
  const rows = await readFigures<Row>(watch, lanesStatement);
  return rows.map(({ environment, waiting, oldestWaitingSeconds, jobId, ...job }) => ({
    environment,
    running: jobId === null ? null : { jobId, ...job },
    waiting,
    oldestWaitingSeconds,
  }));
}

/* All chunks of a running load are read, some thousands at most, and none of those that wait. */
const lanesStatement = `
  with lane as (
    select *, coalesce(started_at, now()) as begun_at
    from background_jobs
    where status in ('queued', 'processing') and lane_position is not null
  ),
  waiting as (
    select environment_id, count(*) as count, min(accepted_at) as oldest
    from lane
    where status = 'queued'
    group by environment_id
  ),
  running as (
    select distinct on (environment_id) *
    from lane
    where status = 'processing'
    order by environment_id, begun_at
  )
  select
    e.name as environment,
    r.job_id as "jobId",
    r.type,
    r.done,
    r.total,
    extract(epoch from now() - r.begun_at)::float8 as "runningSeconds",
    case when r.kind = 'load' then (
      select round(
        coalesce(sum(c.row_count), 0)
          / greatest(least(${rateSeconds}, extract(epoch from now() - r.begun_at)), 1)
      )::bigint
      from load_chunks c
      where c.load_id = r.id and c.done_at > now() - interval '${rateSeconds} s'
    ) end as "rowsPerSecond",
    coalesce(w.count, 0) as waiting,
    extract(epoch from now() - w.oldest)::float8 as "oldestWaitingSeconds"
  from environments e
  left join running r on r.environment_id = e.environment_id
  left join waiting w on w.environment_id = e.environment_id
  where r.environment_id is not null or w.environment_id is not null
  order by w.oldest nulls last, e.name`;

export function readRunningExports(watch: pg.Pool): Promise<RunningExport[]> {
  return readFigures(
    watch,
    `select
      e.name as environment,
      x.job_id as "jobId",
      x.rows_written as rows,
      x.bytes_written as bytes,
      extract(epoch from now() - x.started_at)::float8 as "runningSeconds"
    from exports x
    join environments e using (environment_id)
    where x.status = 'processing'
    order by x.export_id`,
  );
}

/** Lists the latest failures of any kind, latest first; those of a schedule's run that made jobs are those of its jobs. */
export function readFailures(watch: pg.Pool): Promise<Failure[]> {
  return readFigures(
    watch,
    `select
      e.name as environment,
      f.job_id as "jobId",
      f.schedule,
      f.type,
      f.ended_at as "endedAt",
      f.failure_code as code,
      coalesce(f.failure_message, f.failure_code) as message
    from environments e
    cross join lateral (
      (
        select job_id, null as schedule, type, status, ended_at, failure_code, failure_message
        from background_jobs
        where environment_id = e.environment_id
        order by job_id desc
        limit ${failuresAmong}
      )
      union all
      (
        select null, schedule_name, 'schedule', status, ended_at, reason_code, reason
        from schedule_runs r
        where r.environment_id = e.environment_id and r.status = 'failed'
          and not exists (select 1 from schedule_run_items i where i.run_id = r.run_id and i.job_id is not null)
        order by run_id desc
        limit ${failuresAmong}
      )
    ) f
    where f.status = 'failed'
    order by f.ended_at desc
    limit ${failuresShown}`,
  );
}

export function readRetries(watch: pg.Pool): Promise<Retry[]> {
  return readFigures(
    watch,
    `select distinct on (t.job_id)
      e.name as environment,
      t.job_id as "jobId",
      j.type,
      case when t.kind = 'chunk' then 'chunk ' || t.part || ': ' else '' end || t.last_error as "lastError"
    from tasks t
    join background_jobs j using (job_id)
    join environments e on e.environment_id = t.environment_id
    where t.last_error is not null
    order by t.job_id, t.part
    limit ${retriesShown}`,
  );
}

export interface LaneItem {
  readonly jobId: string;
  readonly type: string;
  readonly status: string;
  readonly filename: string | null;
  readonly done: number;
  readonly total: number;
  readonly acceptedAt: Date;
}

export interface EnvironmentOverview {
  readonly queued: number;
  readonly processing: number;
  /** Jobs that failed in the last 24 hours. */
  readonly failedLately: number;
  /** The records of loads that are not accounted for: see `unaccounted`. */
  readonly unaccounted: number;
  /** Loads and deletions in the order in which they take effect, the first of them. */
  readonly lane: readonly LaneItem[];
}

/**
 * Records that the ledger lost or counted twice; 0 where it is right. Of each load that is kept the difference between the records read
 * and their outcomes, and of a completed one between those read and those received; of the newest loads also between those
 * read and those in the chunks that are done.
 */
const unaccounted = (environmentId: number) => sql<number>`(
  select coalesce(sum(
    abs(
      rows_read
        - (rows_inserted + rows_updated + rows_unchanged + rows_superseded + rows_rejected + rows_amended)
    ) + case when status = 'completed' then abs(total_rows - rows_read) else 0 end
  ), 0)::bigint
  from loads
  where environment_id = ${environmentId}
) + (
  select coalesce(sum(abs(l.rows_read - c.done)), 0)::bigint
  from (
    select load_id, rows_read
    from loads
    where environment_id = ${environmentId}
    order by job_id desc
    limit ${RECOUNTED_LOADS}
  ) l
  cross join lateral (
    select coalesce(sum(row_count), 0)::bigint as done
    from load_chunks
    where load_id = l.load_id and done_at is not null
  ) c
)`;

/** Reads every load that is kept of the environment, some 0.6 s for a million: in turn. */
export async function readEnvironmentOverview(
  db: Database,
  environmentId: number,
): Promise<EnvironmentOverview> {
  const { rows } = await sql<Omit<EnvironmentOverview, 'lane'>>`
    select
      count(*) filter (where status = 'queued') as queued,
      count(*) filter (where status = 'processing') as processing,
      count(*) filter (where status = 'failed' and ended_at > now() - interval '24 hours') as "failedLately",
      (select ${unaccounted(environmentId)}) as unaccounted
    from background_jobs
    where environment_id = ${environmentId}`.execute(db);
  const [counts] = rows;
  if (counts === undefined) throw new Error('a row was expected');
  const { rows: lane } = await sql<LaneItem>`
    select job_id as "jobId", type, status, filename, done, total, accepted_at as "acceptedAt"
    from background_jobs
    where environment_id = ${environmentId} and status in ('queued', 'processing') and lane_position is not null
    order by status = 'processing' desc, lane_position
    limit ${SHOWN_LANE_JOBS}`.execute(db);
  return { ...counts, lane };
}

/** A task that was tried in vain, or vanished with its worker, since it last got on. */
export interface FailingTask {
  readonly kind: string;
  /** `null`: it belongs to no job. */
  readonly jobId: string | null;
  /** The number of a chunk; 0 of any other kind. */
  readonly part: number;
  readonly failures: number;
  readonly losses: number;
  readonly lastError: string | null;
  /** `null`: it is under way. */
  readonly nextTryAt: Date | null;
}

/** Background work that is to be done or under way. */
export interface WorkOverview {
  readonly waiting: number;
  readonly running: number;
  /** Tasks that are tried again later. */
  readonly postponed: number;
  /** The first SHOWN_FAILING_TASKS, in the order in which they are tried. */
  readonly failing: readonly FailingTask[];
}

/** Reads the work of an environment; with `withSystem` also the work that belongs to none. */
export async function readWork(
  db: Database,
  environmentId: number,
  withSystem: boolean,
): Promise<WorkOverview> {
  const environments = withSystem ? [environmentId, 0] : [environmentId];
  const { rows } = await sql<Omit<WorkOverview, 'failing'>>`
    select
      count(*) filter (where lease_until is null and not_before <= now()) as waiting,
      count(*) filter (where lease_until is not null) as running,
      count(*) filter (where lease_until is null and not_before > now()) as postponed
    from tasks
    where environment_id = any(${environments})`.execute(db);
  const { rows: failing } = await sql<FailingTask>`
    select
      kind, job_id as "jobId", part, failures, losses, last_error as "lastError",
      case when lease_until is null then not_before end as "nextTryAt"
    from tasks
    where environment_id = any(${environments}) and (last_error is not null or losses > 0)
    order by not_before, task_id
    limit ${SHOWN_FAILING_TASKS}`.execute(db);
  const [counts = { waiting: 0, running: 0, postponed: 0 }] = rows;
  return { ...counts, failing };
}

export type Counted = 'records' | 'refused' | 'rows';

/** Adds to the counts of this minute, in the order of environments, so that two processes cannot deadlock. */
export async function addRates(
  db: Database,
  counted: ReadonlyMap<number, Readonly<Record<Counted, number>>>,
): Promise<void> {
  const rows = [...counted].map(([environment, counts]) => ({ environment, ...counts }));
  rows.sort((a, b) => a.environment - b.environment);
  await sql`
    with old as (
      delete from minute_rates
      where environment_id = any (${rows.map(({ environment }) => environment)}::int[])
        and minute < now() - ${KEPT_RATE_MINUTES} * interval '1 minute' - interval '1 hour'
    )
    insert into minute_rates as m (environment_id, minute, records, refused, rows)
    select environment, date_trunc('minute', now()), records, refused, rows
    from json_to_recordset(${JSON.stringify(rows)}) as c (environment int, records bigint, refused bigint, rows bigint)
    on conflict (environment_id, minute) do update set
      records = m.records + excluded.records,
      refused = m.refused + excluded.refused,
      rows = m.rows + excluded.rows`.execute(db);
}

export interface MinuteRate extends Readonly<Record<Counted, number>> {
  readonly minute: Date;
}

/** Reads the rates of the last hour, oldest first, including minutes in which nothing came. */
export async function readRates(db: Database, environmentId: number): Promise<MinuteRate[]> {
  const { rows } = await sql<MinuteRate>`
    select
      g.minute,
      coalesce(m.records, 0) as records,
      coalesce(m.refused, 0) as refused,
      coalesce(m.rows, 0) as rows
    from generate_series(
      date_trunc('minute', now()) - ${KEPT_RATE_MINUTES - 1} * interval '1 minute', date_trunc('minute', now()),
      interval '1 minute'
    ) g (minute)
    left join minute_rates m on m.environment_id = ${environmentId} and m.minute = g.minute
    order by g.minute`.execute(db);
  return rows;
}
