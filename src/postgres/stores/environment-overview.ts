import { sql } from 'kysely';
import { RECOUNTED_LOADS, SHOWN_FAILING_TASKS, SHOWN_LANE_JOBS } from '../../domain/limits.ts';
import type { Database } from '../database.ts';

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
