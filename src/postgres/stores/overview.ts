import type pg from 'pg';
import { WORKER_ALIVE_SECONDS } from '../../domain/limits.ts';
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
