import { type RawBuilder, sql } from 'kysely';
import type pg from 'pg';
import { MAX_COUNTED_AHEAD } from '../../domain/limits.ts';
import type { Database } from '../database.ts';
import { withTimeout } from '../pool.ts';

/** Serialises decisions about one lane; the class half of a two-key advisory lock. */
const laneLock = 0x4c414e45;

/** Until the transaction ends nobody starts, retries or puts a deletion into the lane. */
export async function lockLane(db: Database, environmentId: number): Promise<void> {
  await sql`select pg_advisory_xact_lock(${laneLock}, ${environmentId})`.execute(db);
}

/** Who is next in a lane: a load or a deletion. */
export interface LaneHead {
  readonly kind: 'load' | 'deletion';
  readonly id: number;
}

/**
 * A lane is an environment: its loads and deletions run one after another, in the order of acceptance. Who is to be started: the next
 * one, if none runs; null otherwise. Call it in the transaction that starts it.
 */
export async function findLaneHead(db: Database, environmentId: number): Promise<LaneHead | null> {
  await lockLane(db, environmentId);
  const { rows } = await sql<LaneHead & { status: string }>`
    select kind, id, status
    from (
      select 'load' as kind, load_id as id, status, lane_position
      from loads
      where environment_id = ${environmentId} and status in ('queued', 'processing')
      union all
      select 'deletion', deletion_id, status, lane_position
      from deletions
      where environment_id = ${environmentId} and status in ('queued', 'processing')
    ) lane
    order by status = 'processing' desc, lane_position
    limit 1`.execute(db);
  const [next] = rows;
  // A running job sorts first: then nothing starts.
  return next?.status === 'queued' ? { kind: next.kind, id: next.id } : null;
}

/** Environments in which something waits and nothing runs. */
export async function idleLanes(db: Database): Promise<number[]> {
  const { rows } = await sql<{ environmentId: number }>`
    select environment_id as "environmentId"
    from (
      select environment_id, status
      from loads
      where status in ('queued', 'processing')
      union all
      select environment_id, status
      from deletions
      where status in ('queued', 'processing')
    ) lanes
    group by environment_id
    having not bool_or(status = 'processing')`.execute(db);
  return rows.map((row) => row.environmentId);
}

/**
 * Unfinished loads and deletions before a row of `table`, at most MAX_COUNTED_AHEAD of each; what runs stands before all that
 * waits. Reads so many entries of an index: for one job, not for each of a list.
 */
export function aheadInLane(table: 'loads' | 'deletions'): RawBuilder<number> {
  const own = (column: string) => sql.ref(`${table}.${column}`);
  const before = (other: 'loads' | 'deletions') => sql`(
    select count(*)
    from (
      select 1
      from ${sql.table(other)} other
      where other.environment_id = ${own('environment_id')}
        and other.status in ('queued', 'processing')
        and other.lane_position < ${own('lane_position')}
      limit ${sql.lit(MAX_COUNTED_AHEAD)}
    ) others
  )`;
  return sql<number>`(
    case when ${own('status')} = 'queued' then ${before('loads')} + ${before('deletions')} else 0 end
  )`;
}

const timeoutMs = 3_000;
/** Over this long the rate of a running load is measured. */
const rateSeconds = 30;
/** Among so many of the latest jobs of each kind failures are looked for: it must not cost more the more is kept. */
const failuresAmong = 1_000;
const failuresShown = 5;
const retriesShown = 5;

/** The state of an environment's lane, which runs one load or deletion at a time, in the order of acceptance. */
export interface LaneOverview {
  readonly environment: string;
  /** `null`: nothing runs. */
  readonly running: LaneJob | null;
  readonly waiting: number;
  /** Since the longest waiting was accepted; null: none waits. */
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

/** Environments in which something runs or waits; the longest waiting first. */
export async function readLanes(watch: pg.Pool): Promise<LaneOverview[]> {
  const { rows } = await watch.query<LaneRow>(withTimeout(lanesStatement, timeoutMs));
  return rows.map(({ environment, waiting, oldestWaitingSeconds, jobId, ...job }) => ({
    environment,
    running: jobId === null ? null : { jobId, ...job },
    waiting,
    oldestWaitingSeconds,
  }));
}

interface LaneRow extends Omit<LaneJob, 'jobId'> {
  readonly environment: string;
  readonly jobId: string | null;
  readonly waiting: number;
  readonly oldestWaitingSeconds: number | null;
}

/* Of a running load all chunks are read, some thousands at most; of those that wait none. */
const lanesStatement = `
  with lane as (
    select environment_id, job_id, type, status, accepted_at, coalesce(work_started_at, now()) as started_at, rows_read as done, total_rows as total,
      load_id
    from loads
    where status in ('queued', 'processing')
    union all
    select environment_id, job_id, 'delete_' || entity, status, accepted_at, started_at, ids_deleted + ids_not_found,
      ids_requested, null
    from deletions
    where status in ('queued', 'processing')
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
    order by environment_id, started_at
  )
  select
    e.name as environment,
    r.job_id as "jobId",
    r.type,
    r.done,
    r.total,
    extract(epoch from now() - r.started_at)::float8 as "runningSeconds",
    case when r.load_id is not null then (
      select round(
        coalesce(sum(c.row_count), 0)
          / greatest(least(${rateSeconds}, extract(epoch from now() - r.started_at)), 1)
      )::bigint
      from load_chunks c
      where c.load_id = r.load_id and c.done_at > now() - interval '${rateSeconds} s'
    ) end as "rowsPerSecond",
    coalesce(w.count, 0) as waiting,
    extract(epoch from now() - w.oldest)::float8 as "oldestWaitingSeconds"
  from environments e
  left join running r on r.environment_id = e.environment_id
  left join waiting w on w.environment_id = e.environment_id
  where r.environment_id is not null or w.environment_id is not null
  order by w.oldest nulls last, e.name`;

export async function readRunningExports(watch: pg.Pool): Promise<RunningExport[]> {
  const statement = `
    select
      e.name as environment,
      x.job_id as "jobId",
      x.rows_written as rows,
      x.bytes_written as bytes,
      extract(epoch from now() - x.started_at)::float8 as "runningSeconds"
    from exports x
    join environments e on e.environment_id = x.environment_id
    where x.status = 'processing'
    order by x.export_id`;
  return (await watch.query<RunningExport>(withTimeout(statement, timeoutMs))).rows;
}

/** The latest failures of any kind, latest first; of a run of a schedule that made jobs, those of its jobs. */
export async function readFailures(watch: pg.Pool): Promise<Failure[]> {
  const statement = `
    with latest as (
      (
        select environment_id, job_id, null as schedule, type, status, ended_at, failure_code, failure_message
        from loads
        order by load_id desc
        limit ${failuresAmong}
      )
      union all
      (
        select environment_id, job_id, null, 'export', status, ended_at, failure_code, failure_message
        from exports
        order by export_id desc
        limit ${failuresAmong}
      )
      union all
      (
        select environment_id, job_id, null, 'delete_' || entity, status, ended_at, failure_code, failure_message
        from deletions
        order by deletion_id desc
        limit ${failuresAmong}
      )
      union all
      (
        select environment_id, null, schedule_name, 'schedule', status, ended_at, reason_code, reason
        from schedule_runs r
        where not exists (select 1 from schedule_run_items i where i.run_id = r.run_id and i.job_id is not null)
        order by run_id desc
        limit ${failuresAmong}
      )
    )
    select
      e.name as environment,
      l.job_id as "jobId",
      l.schedule,
      l.type,
      l.ended_at as "endedAt",
      l.failure_code as code,
      coalesce(l.failure_message, l.failure_code) as message
    from latest l
    join environments e on e.environment_id = l.environment_id
    where l.status = 'failed'
    order by l.ended_at desc
    limit ${failuresShown}`;
  return (await watch.query<Failure>(withTimeout(statement, timeoutMs))).rows;
}

export async function readRetries(watch: pg.Pool): Promise<Retry[]> {
  const statement = `
    select distinct on (t.job_id)
      e.name as environment,
      t.job_id as "jobId",
      j.type,
      case when t.kind = 'chunk' then 'chunk ' || t.part || ': ' else '' end || t.last_error as "lastError"
    from tasks t
    join background_jobs j on j.job_id = t.job_id
    join environments e on e.environment_id = t.environment_id
    where t.last_error is not null
    order by t.job_id, t.part
    limit ${retriesShown}`;
  return (await watch.query<Retry>(withTimeout(statement, timeoutMs))).rows;
}
