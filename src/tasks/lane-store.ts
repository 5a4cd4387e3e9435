import { type RawBuilder, sql } from 'kysely';
import type pg from 'pg';
import { MAX_COUNTED_AHEAD } from '../base/limits.ts';
import { camel } from '../postgres/columns.ts';
import { columnOf, type Database, firstRow, isTrue, prepared, updateWhere } from '../postgres/database.ts';
import { readFigures } from '../postgres/pool.ts';
import { insertTask } from './store.ts';

// A lane contains the loads and deletions of an environment. They run one by one in the order of
// acceptance.

/** First key of the advisory lock. The second is the environment's id. */
const laneLock = 0x4c414e45;

/** Until the transaction ends, other transactions cannot start, retry or add jobs in the lane. */
export async function lockLane(db: Database, environmentId: number): Promise<void> {
  await sql`select pg_advisory_xact_lock(${laneLock}, ${environmentId})`.execute(prepared(db));
}

/** Returns false if another transaction has locked the lane. */
export function tryLockLane(db: Database, environmentId: number): Promise<boolean> {
  return isTrue(prepared(db))`select pg_try_advisory_xact_lock(${laneLock}, ${environmentId}) as locked`;
}

interface LaneHead {
  readonly kind: 'load' | 'deletion';
  readonly id: number;
  readonly jobId: string;
}

/**
 * Returns the next job, or `null` if a job is running or none waits. Lock the lane before this call
 * if you want to start the job.
 */
export async function findLaneHead(db: Database, environmentId: number): Promise<LaneHead | null> {
  const next = await firstRow<LaneHead & { status: string }>(prepared(db))`
    select kind, id, job_id as "jobId", status
    from background_jobs
    where environment_id = ${environmentId} and status in ('queued', 'processing') and lane_position is not null
    order by status = 'processing' desc, lane_position
    limit 1`;
  // If a job were running, it would be the first row.
  return next?.status === 'queued' ? next : null;
}

/** Returns the environments that have waiting jobs but no running job. */
export function idleLanes(db: Database): Promise<number[]> {
  return columnOf<number>(prepared(db))`
    select environment_id as "environmentId"
    from background_jobs
    where status in ('queued', 'processing') and lane_position is not null
    group by environment_id
    having not bool_or(status = 'processing')`;
}

/**
 * Number of unfinished jobs ahead of a queued job, up to MAX_COUNTED_AHEAD. This subquery runs for
 * each row, so lists do not use it.
 */
export function aheadInLane(table: 'loads' | 'deletions'): RawBuilder<number> {
  const ref = (column: string) => sql.ref(`${table}.${column}`);
  return sql<number>`case when ${ref('status')} = 'queued' then (
    select count(*)
    from (
      select 1
      from background_jobs other
      where other.environment_id = ${ref('environment_id')}
        and other.status in ('queued', 'processing')
        and other.lane_position < ${ref('lane_position')}
      limit ${sql.lit(MAX_COUNTED_AHEAD)}
    ) others
  ) else 0 end`;
}

/** A load's rate is measured over this period. */
const rateSeconds = 30;

/** Lanes with unfinished jobs, longest waiting first. `running` is the running job, or `null`. */
export function readLanes(watch: pg.Pool): Promise<object[]> {
  return readFigures(watch, lanesStatement);
}

// Reads the chunks of running loads (at most a few thousand), but not those of waiting loads.
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
    case when r.job_id is not null then json_build_object(
      'jobId', r.job_id,
      'type', r.type,
      'done', r.done,
      'total', r.total,
      'runningSeconds', extract(epoch from now() - r.begun_at)::float8,
      'rowsPerSecond', case when r.kind = 'load' then (
      select round(
        coalesce(sum(c.row_count), 0)
          / greatest(least(${rateSeconds}, extract(epoch from now() - r.begun_at)), 1)
      )::bigint
      from load_chunks c
      where c.load_id = r.id and c.done_at > now() - interval '${rateSeconds} s'
    ) end) end as running,
    coalesce(w.count, 0) as waiting,
    extract(epoch from now() - w.oldest)::float8 as "oldestWaitingSeconds"
  from environments e
  left join running r on r.environment_id = e.environment_id
  left join waiting w on w.environment_id = e.environment_id
  where r.environment_id is not null or w.environment_id is not null
  order by w.oldest nulls last, e.name`;

export async function startDeletion(db: Database, deletionId: number) {
  const deletion = await updateWhere(db, 'deletions', { deletionId, status: 'queued' })
    .set({ status: 'processing', started_at: sql`coalesce(started_at, now())` })
    .returning(camel('job_id', 'request_id', 'environment_id'))
    .executeTakeFirst();
  if (deletion === undefined) return null;
  const task = await insertTask(db, { kind: 'deletion', subjectId: deletionId, part: 0, ...deletion });
  return { ...deletion, tasks: task === null ? [] : [task] };
}

/** True if a deletion follows the load in the lane. The load's file must then not be used again. */
export function isBeforeDeletion(db: Database, environmentId: number, jobId: string): Promise<boolean> {
  return isTrue(db)`
    select exists (
      select 1
      from deletions d
      join loads l using (environment_id)
      where l.environment_id = ${environmentId} and l.job_id = ${jobId} and l.lane_position < d.lane_position
    ) as before`;
}
