import { sql } from 'kysely';
import type pg from 'pg';
import {
  RATE_STEPS,
  SHOWN_FAILING_TASKS,
  SHOWN_FAILURES,
  SHOWN_JOB_DAYS,
  SHOWN_LANE_JOBS,
} from '../base/limits.ts';
import { recordOutcomes } from '../domain/load.ts';
import { timeText } from '../postgres/columns.ts';
import { type Database, rowOf, rowsOf } from '../postgres/database.ts';
import { readFigures } from '../postgres/pool.ts';
import { currentStep, stepOf } from '../telemetry/rate-store.ts';
import type { Overview } from './overview-api.ts';

const RECOUNTED_LOADS = 200;

/* Running and waiting work, for `sluice status` (all environments) and the overview. */

/** Number of an environment's latest jobs that are searched for failures. */
const failuresAmong = 1_000;
const retriesShown = 5;

const listStatements = {
  exports: `
    select
      e.name as environment,
      x.job_id as "jobId",
      x.rows_written as rows,
      x.bytes_written as bytes,
      extract(epoch from now() - x.started_at)::float8 as "runningSeconds"
    from exports x
    join environments e using (environment_id)
    where x.status = 'processing'
    order by x.export_id`,
  failures: `
    select
      e.name as environment,
      f.job_id as "jobId",
      f.type,
      f.ended_at as "endedAt",
      f.failure_code as code,
      coalesce(f.failure_message, f.failure_code) as message
    from environments e
    cross join lateral (
      select job_id, type, status, ended_at, failure_code, failure_message
      from background_jobs
      where environment_id = e.environment_id
      order by job_id desc
      limit ${failuresAmong}
    ) f
    where f.status = 'failed'
    order by f.ended_at desc
    limit ${SHOWN_FAILURES}`,
  retries: `
    select distinct on (t.job_id)
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
} as const;

export function readList<Item = object>(watch: pg.Pool, name: keyof typeof listStatements): Promise<Item[]> {
  return readFigures(watch, listStatements[name]);
}

/**
 * Number of records that the ledger has lost or counted twice. In all loads, the number of records
 * read must equal the sum of the outcomes. In completed loads, it must also equal the number of
 * records received. In the latest loads, it must also equal the number of records in done chunks.
 * Loads in a validation pass are left out, because this pass does not mark chunks as done.
 */
const unaccounted = (environmentId: number) => sql<number>`(
  select coalesce(sum(
    abs(
      rows_read
        - (${sql.raw(recordOutcomes.map((outcome) => `rows_${outcome}`).join(' + '))})
    ) + case when status = 'completed' then abs(total_rows - rows_read) else 0 end
  ), 0)::bigint
  from loads
  where environment_id = ${environmentId}
) + (
  select coalesce(sum(abs(l.rows_read - c.done)), 0)::bigint
  from (
    select load_id, rows_read
    from loads
    where environment_id = ${environmentId} and pass <> 'validate'
    order by job_id desc
    limit ${RECOUNTED_LOADS}
  ) l
  cross join lateral (
    select coalesce(sum(row_count), 0)::bigint as done
    from load_chunks
    where load_id = l.load_id and done_at is not null
  ) c
)`;

type Jobs = Pick<Overview, 'queued' | 'processing' | 'failed_24h' | 'unaccounted' | 'lane' | 'job_days'>;

/** Reads all loads: 0.6 s for a million. Therefore, calls run one at a time. */
export async function readJobsOverview(db: Database, environmentId: number): Promise<Jobs> {
  const counts = await rowOf<Omit<Jobs, 'lane' | 'job_days'>>(db)`
    select
      count(*) filter (where status = 'queued') as queued,
      count(*) filter (where status = 'processing') as processing,
      count(*) filter (where status = 'failed' and ended_at > now() - interval '24 hours') as failed_24h,
      (select ${unaccounted(environmentId)}) as unaccounted
    from background_jobs
    where environment_id = ${environmentId}`;
  const lane = await rowsOf<Jobs['lane'][number]>(db)`
    select
      row_number() over (order by status = 'processing' desc, lane_position) - 1 as position,
      job_id, type, status, filename, done, total, ${timeText('accepted_at')} as start_time
    from background_jobs
    where environment_id = ${environmentId} and status in ('queued', 'processing') and lane_position is not null
    order by position
    limit ${SHOWN_LANE_JOBS}`;
  return { ...counts, lane, job_days: await readJobDays(db, environmentId) };
}

/** Job ids begin with a time, so the query can use an index. */
function readJobDays(db: Database, environmentId: number): Promise<Jobs['job_days']> {
  const since = Date.now() - SHOWN_JOB_DAYS * 86_400_000;
  const first = `${since.toString(16).padStart(12, '0')}${'0'.repeat(20)}`;
  return rowsOf<Jobs['job_days'][number]>(db)`
    select to_char(d.day, 'YYYY-MM-DD') as day, coalesce(j.jobs, 0) as jobs, coalesce(j.failed, 0) as failed
    from generate_series(0, ${SHOWN_JOB_DAYS - 1}::int) n
    cross join lateral (select (now() at time zone 'UTC')::date - n as day) d
    left join (
      select (accepted_at at time zone 'UTC')::date as day, count(*) as jobs, count(*) filter (where status = 'failed') as failed
      from background_jobs
      where environment_id = ${environmentId} and job_id >= ${first}::uuid
      group by 1
    ) j using (day)
    order by day`;
}

/** `withSystem` includes work that does not belong to any environment. */
export async function readWork(
  db: Database,
  environmentId: number,
  withSystem: boolean,
): Promise<Overview['work']> {
  const environments = withSystem ? [environmentId, 0] : [environmentId];
  const counts = await rowOf<Omit<Overview['work'], 'failing'>>(db)`
    select
      count(*) filter (where lease_until is null and not_before <= now()) as waiting,
      count(*) filter (where lease_until is not null) as running,
      count(*) filter (where lease_until is null and not_before > now()) as postponed
    from tasks
    where environment_id = any(${environments})`;
  const failing = await rowsOf<Overview['work']['failing'][number]>(db)`
    select
      kind as task, job_id, part, failures, losses, last_error,
      case when lease_until is null then ${timeText('not_before')} end as next_try_at
    from tasks
    where environment_id = any(${environments}) and (last_error is not null or losses > 0)
    order by not_before, task_id
    limit ${SHOWN_FAILING_TASKS}`;
  return { ...counts, failing };
}

export function readRates(db: Database, environmentId: number, minutes: number): Promise<Overview['rates']> {
  const step = sql`${minutes}::int`;
  return rowsOf<Overview['rates'][number]>(db)`
    select
      ${timeText('b.begins_at')} as begins_at,
      coalesce(r.accepted, 0) as accepted,
      coalesce(r.unchanged, 0) as unchanged,
      coalesce(r.rejected, 0) as rejected
    from generate_series(${RATE_STEPS - 1}::int, 0, -1) n
    cross join lateral (select ${currentStep(step)} - n * ${stepOf(step)} as begins_at) b
    left join rates r on r.environment_id = ${environmentId} and r.minutes = ${step} and r.begins_at = b.begins_at
    order by n desc`;
}
