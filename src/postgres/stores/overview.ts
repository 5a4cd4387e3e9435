import { sql } from 'kysely';
import type pg from 'pg';
import {
  KEPT_RATE_MINUTES,
  RECOUNTED_LOADS,
  SHOWN_FAILING_TASKS,
  SHOWN_LANE_JOBS,
  WORKER_ALIVE_SECONDS,
} from '../../domain/limits.ts';
import type { Database } from '../database.ts';
import { withTimeout } from '../pool.ts';

/** The timeouts of the answers; the server gives up by itself too (`createWatchPool`). */
const backlogTimeoutMs = 2_000;
const rowsTimeoutMs = 5_000;

/** The work that is to be done now. */
export interface Backlog {
  readonly queuedLoads: number;
  readonly processingLoads: number;
  readonly pendingChunks: number;
  readonly runningChunks: number;
  /** Since the longest waiting load was accepted; 0 if none waits. */
  readonly oldestWaitingSeconds: number;
  /** Notifications that are still to be delivered. */
  readonly pendingNotifications: number;
  /** Notifications that were given up, of those that are kept. */
  readonly deadNotifications: number;
  readonly queuedExports: number;
  readonly processingExports: number;
  /** Since the longest waiting export was requested; 0 if none waits. */
  readonly oldestQueuedExportSeconds: number;
  /** Written so far by the exports that run. */
  readonly exportRows: number;
  readonly exportBytes: number;
  readonly queuedDeletions: number;
  readonly processingDeletions: number;
  /** Since the longest waiting deletion was accepted; 0 if none waits. */
  readonly oldestQueuedDeletionSeconds: number;
  /** Runs of schedules that nobody is at: they wait for a worker, for another run, or to be tried again. */
  readonly queuedRuns: number;
  readonly runningRuns: number;
  /** Runs whose jobs are under way. */
  readonly waitingRuns: number;
  /** Since the longest queued run was made; 0 if none is. */
  readonly oldestQueuedRunSeconds: number;
  readonly liveWorkers: number;
}

/*
 * Costs what is unfinished, not what is kept: the loads come from loads_lane_idx, their chunks under way
 * from tasks_running_idx. Exports, deletions and runs of schedules have
 * such indexes too, notifications one per state.
 */
const backlogStatement = `
  with of_loads as (
    select
      count(*) filter (where l.status = 'queued') as "queuedLoads",
      count(*) filter (where l.status = 'processing') as "processingLoads",
      coalesce(sum(l.chunk_count - l.chunks_done - r.running), 0)::bigint as "pendingChunks",
      coalesce(sum(r.running), 0)::bigint as "runningChunks",
      coalesce(
        extract(epoch from now() - min(l.accepted_at) filter (where l.status = 'queued')),
        0
      )::float8 as "oldestWaitingSeconds"
    from loads l
    cross join lateral (
      select count(*) as running
      from tasks t
      where l.status = 'processing' and t.kind = 'chunk' and t.environment_id = l.environment_id and t.lease_until is not null
    ) r
    where l.status in ('queued', 'processing')
  ),
  of_exports as (
    select
      count(*) filter (where status = 'queued') as "queuedExports",
      count(*) filter (where status = 'processing') as "processingExports",
      coalesce(
        extract(epoch from now() - min(requested_at) filter (where status = 'queued')),
        0
      )::float8 as "oldestQueuedExportSeconds",
      coalesce(sum(rows_written) filter (where status = 'processing'), 0)::bigint as "exportRows",
      coalesce(sum(bytes_written) filter (where status = 'processing'), 0)::bigint as "exportBytes"
    from exports
    where status in ('queued', 'processing')
  ),
  of_deletions as (
    select
      count(*) filter (where status = 'queued') as "queuedDeletions",
      count(*) filter (where status = 'processing') as "processingDeletions",
      coalesce(
        extract(epoch from now() - min(accepted_at) filter (where status = 'queued')),
        0
      )::float8 as "oldestQueuedDeletionSeconds"
    from deletions
    where status in ('queued', 'processing')
  ),
  of_notifications as (
    select
      (select count(*) from notification_deliveries where state = 'pending') as "pendingNotifications",
      (select count(*) from notification_deliveries where state = 'dead') as "deadNotifications"
  ),
  of_runs as (
    select
      count(*) filter (where status = 'queued' and lease_until is null) as "queuedRuns",
      count(*) filter (where lease_until is not null) as "runningRuns",
      count(*) filter (where status = 'waiting') as "waitingRuns",
      coalesce(
        extract(epoch from now() - min(created_at) filter (where status = 'queued' and lease_until is null)),
        0
      )::float8 as "oldestQueuedRunSeconds"
    from schedule_runs
    left join tasks on kind = 'run' and subject_id = run_id
    where status in ('queued', 'waiting')
  ),
  of_workers as (
    select count(*) as "liveWorkers"
    from workers
    where seen_at > now() - interval '${WORKER_ALIVE_SECONDS} s'
  )
  select *
  from of_loads, of_exports, of_deletions, of_notifications, of_runs, of_workers`;

export async function readBacklog(watch: pg.Pool): Promise<Backlog> {
  const { rows } = await watch.query<Backlog>(withTimeout(backlogStatement, backlogTimeoutMs));
  return only(rows);
}

/** Rows of the loads of one entity, dry runs aside. */
export interface LoadRows {
  readonly entity: string;
  readonly inserted: number;
  readonly updated: number;
  readonly unchanged: number;
  readonly superseded: number;
  readonly rejected: number;
  readonly amended: number;
  /** Completed loads whose counts do not add up, or that read another number of records than was received. */
  readonly differences: number;
}

/* Reads every load that is kept, some 0.6 s for a million: ask for it seldom. */
const rowsStatement = `
  select
    entity,
    coalesce(sum(rows_inserted) filter (where not dry_run), 0)::bigint as inserted,
    coalesce(sum(rows_updated) filter (where not dry_run), 0)::bigint as updated,
    coalesce(sum(rows_unchanged) filter (where not dry_run), 0)::bigint as unchanged,
    coalesce(sum(rows_superseded) filter (where not dry_run), 0)::bigint as superseded,
    coalesce(sum(rows_rejected) filter (where not dry_run), 0)::bigint as rejected,
    coalesce(sum(rows_amended) filter (where not dry_run), 0)::bigint as amended,
    count(*) filter (
      where status = 'completed'
        and (
          rows_read <> total_rows
          or rows_read <> rows_inserted + rows_updated + rows_unchanged + rows_superseded + rows_rejected + rows_amended
        )
    ) as differences
  from loads
  group by entity`;

export async function readLoadRows(watch: pg.Pool): Promise<LoadRows[]> {
  const { rows } = await watch.query<LoadRows>(withTimeout(rowsStatement, rowsTimeoutMs));
  return rows;
}

function only<T>(rows: readonly T[]): T {
  const [row] = rows;
  if (row === undefined) throw new Error('a row was expected');
  return row;
}

/* What an environment is at, for its overview. */

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
    with jobs as (
      select status, ended_at from loads where environment_id = ${environmentId}
      union all
      select status, ended_at from exports where environment_id = ${environmentId}
      union all
      select status, ended_at from deletions where environment_id = ${environmentId}
    )
    select
      count(*) filter (where status = 'queued') as queued,
      count(*) filter (where status = 'processing') as processing,
      count(*) filter (where status = 'failed' and ended_at > now() - interval '24 hours') as "failedLately",
      (select ${unaccounted(environmentId)}) as unaccounted
    from jobs`.execute(db);
  const [counts] = rows;
  if (counts === undefined) throw new Error('a row was expected');
  const { rows: lane } = await sql<LaneItem>`
    select "jobId", type, status, filename, done, total, "acceptedAt"
    from (
      select
        job_id as "jobId", type, status, filename, rows_read as done, total_rows as total, accepted_at as "acceptedAt",
        lane_position
      from loads
      where environment_id = ${environmentId} and status in ('queued', 'processing')
      union all
      select
        job_id, 'delete_' || entity, status, null, ids_deleted + ids_not_found, ids_requested, accepted_at, lane_position
      from deletions
      where environment_id = ${environmentId} and status in ('queued', 'processing')
    ) waiting
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
  /** Not before; null: it is under way. */
  readonly nextTryAt: Date | null;
}

/** Background work that is to be done or under way. */
export interface WorkOverview {
  readonly waiting: number;
  readonly running: number;
  /** To be tried again later. */
  readonly postponed: number;
  /** The first SHOWN_FAILING_TASKS, in the order in which they are tried. */
  readonly failing: readonly FailingTask[];
}

/** `withSystem`: and of the work that belongs to no environment. */
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

/* What came in by the minute, of the last hour. */

export type Counted = 'records' | 'refused' | 'rows';

/** In the order of environments, so that two processes do not wait for each other for ever. */
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

/** The last hour, oldest first; minutes in which nothing came are there too. */
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
