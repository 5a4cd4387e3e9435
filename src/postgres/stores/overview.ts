import { sql } from 'kysely';
import type pg from 'pg';
import type { Overview } from '../../api/overview.ts';
import {
  KEPT_RATE_MINUTES,
  RECOUNTED_LOADS,
  SHOWN_FAILING_TASKS,
  SHOWN_LANE_JOBS,
} from '../../domain/limits.ts';
import { outcomes } from '../../domain/load.ts';
import type { Database } from '../database.ts';
import { readFigures } from '../pool.ts';

/* The work that runs and waits: in all environments for `sluice status`, in one for its overview. */

/** The latest jobs of an environment that are searched for failures, so that the cost does not grow with what is kept. */
const failuresAmong = 1_000;
const failuresShown = 5;
const retriesShown = 5;

/** The lists that `sluice status` shows of all environments. A schedule's run that made jobs is not among the failures; its jobs are. */
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
  /** Jobs that go on after an error; the oldest. */
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
type ListName = keyof typeof listStatements;

export function readList(watch: pg.Pool, name: ListName): Promise<object[]> {
  return readFigures(watch, listStatements[name]);
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
        - (${sql.raw(outcomes.map((outcome) => `rows_${outcome}`).join(' + '))})
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

const timeText = (column: string) =>
  sql.raw<string>(`to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`);

type Jobs = Pick<Overview, 'queued' | 'processing' | 'failed_24h' | 'unaccounted' | 'lane'>;

/** Reads every load that is kept of the environment, some 0.6 s for a million: in turn. */
export async function readJobsOverview(db: Database, environmentId: number): Promise<Jobs> {
  const { rows } = await sql<Omit<Jobs, 'lane'>>`
    select
      count(*) filter (where status = 'queued') as queued,
      count(*) filter (where status = 'processing') as processing,
      count(*) filter (where status = 'failed' and ended_at > now() - interval '24 hours') as failed_24h,
      (select ${unaccounted(environmentId)}) as unaccounted
    from background_jobs
    where environment_id = ${environmentId}`.execute(db);
  const [counts] = rows;
  if (counts === undefined) throw new Error('a row was expected');
  const { rows: lane } = await sql<Jobs['lane'][number]>`
    select
      row_number() over (order by status = 'processing' desc, lane_position) - 1 as position,
      job_id, type, status, filename, done, total, ${timeText('accepted_at')} as start_time
    from background_jobs
    where environment_id = ${environmentId} and status in ('queued', 'processing') and lane_position is not null
    order by position
    limit ${SHOWN_LANE_JOBS}`.execute(db);
  return { ...counts, lane };
}

/** Reads the work of an environment; with `withSystem` also the work that belongs to none. */
export async function readWork(
  db: Database,
  environmentId: number,
  withSystem: boolean,
): Promise<Overview['work']> {
  const environments = withSystem ? [environmentId, 0] : [environmentId];
  const { rows } = await sql<Omit<Overview['work'], 'failing'>>`
    select
      count(*) filter (where lease_until is null and not_before <= now()) as waiting,
      count(*) filter (where lease_until is not null) as running,
      count(*) filter (where lease_until is null and not_before > now()) as postponed
    from tasks
    where environment_id = any(${environments})`.execute(db);
  const { rows: failing } = await sql<Overview['work']['failing'][number]>`
    select
      kind as task, job_id, part, failures, losses, last_error,
      case when lease_until is null then ${timeText('not_before')} end as next_try_at
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

export async function readRates(db: Database, environmentId: number): Promise<Overview['minutes']> {
  const { rows } = await sql<Overview['minutes'][number]>`
    select
      ${timeText('g.minute')} as minute,
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
