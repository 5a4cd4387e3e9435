import type pg from 'pg';
import { MAX_SCHEDULE_LABELS, WORKER_ALIVE_SECONDS } from '../../domain/limits.ts';
import { outcomes } from '../../domain/load.ts';
import type { FailingSchedule, NeedCounts } from '../../domain/need.ts';
import { readFigure, readFigures } from '../pool.ts';

/* The figures of the ledger that `/metrics`, `sluice status` and `/v1/overview` show. `overview.ts` reads what runs. */

export interface Unfinished {
  readonly queued: number;
  readonly processing: number;
  readonly oldestSeconds: number;
}

export interface Backlog {
  readonly loads: Unfinished;
  /** Loads that wait for a person. */
  readonly heldLoads: number;
  readonly exports: Unfinished;
  readonly deletions: Unfinished;
  /** Runs of schedules; those that are queued wait for a worker, for another run, or to be tried again. */
  readonly runs: Unfinished;
  readonly waitingRuns: number;
  readonly pendingChunks: number;
  readonly runningChunks: number;
  readonly pendingNotifications: number;
  readonly deadNotifications: number;
  readonly exportRows: number;
  readonly exportBytes: number;
  readonly liveWorkers: number;
}

const unfinished = (queued: string, processing: string, since: string) => `json_build_object(
    'queued', count(*) filter (where ${queued}),
    'processing', count(*) filter (where ${processing}),
    'oldestSeconds', coalesce(extract(epoch from now() - min(${since}) filter (where ${queued})), 0)
  )`;

const jobsOf = (kind: string) => `(
    select ${unfinished("status = 'queued'", "status = 'processing'", 'accepted_at')}
    from background_jobs
    where kind = '${kind}' and status in ('queued', 'processing')
  )`;

/*
 * Costs what is unfinished, not what is kept: every table of jobs has an index of those, chunks under way come from
 * tasks_running_idx, and notifications have an index for each state.
 */
const backlogStatement = `
  select
    ${jobsOf('load')} as loads, ${jobsOf('export')} as exports, ${jobsOf('deletion')} as deletions,
    of_runs.*, of_chunks.*, of_exports.*,
    (select count(*) from loads where status = 'held') as "heldLoads",
    (select count(*) from notification_deliveries where state = 'pending') as "pendingNotifications",
    (select count(*) from notification_deliveries where state = 'dead') as "deadNotifications",
    (select count(*) from workers where seen_at > now() - interval '${WORKER_ALIVE_SECONDS} s') as "liveWorkers"
  from (
    select
      ${unfinished("status = 'queued' and lease_until is null", 'lease_until is not null', 'created_at')} as runs,
      count(*) filter (where status = 'waiting') as "waitingRuns"
    from schedule_runs
    left join tasks on kind = 'run' and subject_id = run_id
    where status in ('queued', 'waiting')
  ) of_runs,
  (
    select
      coalesce(sum(l.chunk_count - l.chunks_done - r.running), 0)::bigint as "pendingChunks",
      coalesce(sum(r.running), 0)::bigint as "runningChunks"
    from loads l
    cross join lateral (
      select count(*) as running
      from tasks t
      where l.status = 'processing' and t.kind = 'chunk' and t.environment_id = l.environment_id and t.lease_until is not null
    ) r
    where l.status in ('queued', 'processing')
  ) of_chunks,
  (
    select
      coalesce(sum(rows_written), 0)::bigint as "exportRows", coalesce(sum(bytes_written), 0)::bigint as "exportBytes"
    from exports
    where status = 'processing'
  ) of_exports`;

export function readBacklog(watch: pg.Pool): Promise<Backlog> {
  return readFigure(watch, backlogStatement);
}

const rowsOf = outcomes.map((outcome) => `rows_${outcome}`);

export interface LoadRows extends Readonly<Record<(typeof outcomes)[number], number>> {
  readonly entity: string;
  /** The completed loads whose counts do not add up, or that read another number of records than was received. */
  readonly differences: number;
}

/* Reads every load that is kept, some 0.6 s for a million: ask for it seldom. */
const rowsStatement = `
  select
    entity,
    ${outcomes.map((outcome) => `coalesce(sum(rows_${outcome}) filter (where not dry_run), 0)::bigint as ${outcome}`)},
    count(*) filter (
      where status = 'completed' and (rows_read <> total_rows or rows_read <> ${rowsOf.join(' + ')})
    ) as differences
  from loads
  group by entity`;

export function readLoadRows(watch: pg.Pool): Promise<LoadRows[]> {
  return readFigures(watch, rowsStatement);
}

/** The latest runs of a schedule that are searched for its last success, so that the cost does not grow with what is kept. */
const runsLookedAt = 1_000;

/** The health of a schedule; those of one name in several environments are taken together. */
export interface ScheduleFigures {
  readonly name: string;
  /** The seconds since the last run that did not fail, or at least since the first run that was searched. */
  readonly secondsSinceSuccess: number;
  readonly failing: boolean;
}

const runEnds = ['completed', 'completed_with_rejects', 'unchanged', 'skipped', 'failed'] as const;
export type RecentRuns = Readonly<Record<(typeof runEnds)[number], number>>;

export interface SchedulesOverview {
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

/* Read through schedule_runs_ended_idx. */
const recentStatement = `
  select ${runEnds.map((end) => `count(*) filter (where status = '${end}') as ${end}`)}
  from schedule_runs
  where ended_at > now() - interval '24 hours'`;

export async function readSchedules(watch: pg.Pool): Promise<SchedulesOverview> {
  const schedules = await readFigures<ScheduleFigures>(watch, schedulesStatement);
  return { schedules, recent: await readFigure<RecentRuns>(watch, recentStatement) };
}

export interface EnvironmentNeeds {
  readonly environment: string;
  readonly counts: NeedCounts;
  /** Failing schedules that are enabled and not paused. */
  readonly failing: readonly FailingSchedule[];
}

/** The latest jobs of an environment that are searched for failures, so that the cost does not grow with what is kept. */
const failuresAmong = 10_000;

/*
 * Refused records come from loads_rejects_idx. The last success of a schedule
 * is searched backwards from its latest run; few runs lie in between, since only one is due at a time.
 */
const needsStatement = `
  select
    e.name as environment, "failedJobs", "failedJob", "heldLoads", "heldJob", "refusedRecords", "refusedJobs", "refusedJob",
    "refusedInboxFiles", "inboxFilesWithRejects", "skippedRuns", "deadDeliveries", failing
  from environments e
  cross join lateral (
    select count(*) as "failedJobs", case when count(*) = 1 then min(job_id::text) end as "failedJob"
    from (
      select job_id, status, ended_at
      from background_jobs
      where environment_id = e.environment_id
      order by job_id desc
      limit ${failuresAmong}
    ) ended
    where status = 'failed' and ended_at > now() - interval '24 hours'
  ) of_jobs
  cross join lateral (
    select count(*) as "heldLoads", case when count(*) = 1 then min(job_id::text) end as "heldJob"
    from loads
    where environment_id = e.environment_id and status = 'held'
  ) of_held
  cross join lateral (
    select
      coalesce(sum(l.rows_rejected - mended), 0)::bigint as "refusedRecords",
      count(*) as "refusedJobs",
      case when count(*) = 1 then min(l.job_id::text) end as "refusedJob",
      count(*) filter (where exists (
        select 1
        from inbox_files f
        where f.environment_id = e.environment_id and f.job_id = l.job_id and not f.is_duplicate
          and f.state = 'concluded' and l.origin = 'inbox'
      )) as "inboxFilesWithRejects"
    from loads l
    cross join lateral count_mended(l.load_id) as mended
    where l.environment_id = e.environment_id and l.status = 'completed' and l.rows_rejected > mended
      and not l.dry_run
  ) of_rejects
  cross join lateral (
    select count(*) as "refusedInboxFiles"
    from inbox_files f
    where f.environment_id = e.environment_id and f.state = 'concluded' and f.outcome = 'failed'
      and f.job_id is null and f.concluded_at > now() - interval '24 hours'
  ) of_inbox
  cross join lateral (
    select count(*) as "skippedRuns"
    from schedule_runs r
    where r.environment_id = e.environment_id and r.status = 'skipped' and r.ended_at > now() - interval '24 hours'
  ) of_runs
  cross join lateral (
    select count(*) as "deadDeliveries"
    from notification_deliveries d
    join notification_events v on v.event_id = d.event_id
    where d.state = 'dead' and v.environment_id = e.environment_id
  ) of_deliveries
  cross join lateral (
    select coalesce(json_agg(json_build_object('name', name, 'since', since, 'reason', reason) order by since), '[]') as failing
    from (
      select s.schedule_name as name, min(r.begun_at) as since,
        (array_agg(r.reason order by r.due_at desc))[1] as reason
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
      where s.environment_id = e.environment_id and s.paused_at is null
        and coalesce((s.definition ->> 'enabled')::boolean, true) and s.definition is not null
      group by s.schedule_name
    ) schedules
  ) of_schedules
  where $1::int is null or e.environment_id = $1
  order by e.name`;

export async function readNeeds(pool: pg.Pool, environmentId: number | null): Promise<EnvironmentNeeds[]> {
  type Row = NeedCounts & {
    readonly environment: string;
    readonly failing: readonly (Omit<FailingSchedule, 'since'> & { readonly since: string })[];
  };
  const rows = await readFigures<Row>(pool, needsStatement, [environmentId]);
  return rows.map(({ environment, failing, ...counts }) => ({
    environment,
    counts,
    failing: failing.map((each) => ({ ...each, since: new Date(each.since) })),
  }));
}

export interface ServerFacts {
  readonly version: string;
  readonly number: number;
  readonly encoding: string;
  readonly readOnly: boolean;
  readonly role: string;
  readonly mayCreate: boolean;
  /** Lists our schemas that belong to a role whose rights we do not have. */
  readonly foreign: readonly string[];
  readonly missing: number;
  /** The connections that the role may open, and those that others have. */
  readonly most: number;
  readonly used: number;
  readonly settings: readonly {
    readonly name: string;
    readonly value: string;
    readonly unit: string | null;
  }[];
}

const serverStatement = `
  select
    current_setting('server_version') as version,
    current_setting('server_version_num')::int as number,
    current_setting('server_encoding') as encoding,
    pg_is_in_recovery() or current_setting('transaction_read_only')::bool as "readOnly",
    current_user as role,
    has_database_privilege(current_database(), 'create') as "mayCreate",
    array(
      select nspname::text from pg_namespace where nspname = any ($1) and not pg_has_role(nspowner, 'usage')
    ) as foreign,
    (select cardinality($1::text[]) - count(*) from pg_namespace where nspname = any ($1))::int as missing,
    least(
      current_setting('max_connections')::int
        - current_setting('superuser_reserved_connections')::int
        - coalesce(current_setting('reserved_connections', true), '0')::int,
      nullif(d.datconnlimit, -1),
      nullif(r.rolconnlimit, -1)
    ) as most,
    (
      select count(*)
      from pg_stat_activity
      where backend_type = 'client backend' and application_name not like 'sluice%'
    )::int as used,
    (
      select json_agg(json_build_object('name', name, 'value', setting, 'unit', unit))
      from pg_settings
      where name = any ($2)
    ) as settings
  from pg_database d, pg_roles r
  where d.datname = current_database() and r.rolname = current_user`;

export function readServer(
  client: pg.ClientBase,
  schemas: readonly string[],
  settings: readonly string[],
): Promise<ServerFacts> {
  return readFigure(client, serverStatement, [schemas, settings]);
}
