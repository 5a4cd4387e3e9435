import type pg from 'pg';
import { WORKER_ALIVE_SECONDS } from '../../base/limits.ts';
import { recordOutcomes } from '../../domain/load.ts';
import type { NeedCounts } from '../../domain/need.ts';
import { readFigure, readFigures } from '../../postgres/pool.ts';

/*
 * Figures of the ledger for `/metrics`, `sluice status` and `/v1/overview`. For running jobs, see
 * `src/jobs/overview-store.ts`.
 */

export interface Unfinished {
  readonly queued: number;
  readonly processing: number;
  readonly oldestSeconds: number;
}

export interface Backlog {
  readonly loads: Unfinished;
  readonly heldLoads: number;
  readonly exports: Unfinished;
  readonly deletions: Unfinished;
  readonly pendingChunks: number;
  readonly runningChunks: number;
  readonly exportRows: number;
  readonly exportBytes: number;
  readonly liveWorkers: number;
}

/** Returns SQL that creates an `Unfinished` object. The arguments are SQL expressions. */
export const unfinished = (queued: string, processing: string, since: string) => `json_build_object(
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
 * The cost of this statement depends on the number of unfinished jobs, not on the number of stored
 * jobs. Every table of jobs has an index on unfinished jobs, and tasks_running_idx contains the
 * running chunks.
 */
const backlogStatement = `
  select
    ${jobsOf('load')} as loads, ${jobsOf('export')} as exports, ${jobsOf('deletion')} as deletions,
    of_chunks.*, of_exports.*,
    (select count(*) from loads where status = 'held') as "heldLoads",
    (select count(*) from workers where seen_at > now() - interval '${WORKER_ALIVE_SECONDS} s') as "liveWorkers"
  from (
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

const outcomeColumns = recordOutcomes.map((outcome) => `rows_${outcome}`);

export interface LoadRows extends Readonly<Record<(typeof recordOutcomes)[number], number>> {
  readonly entity: string;
  /**
   * Number of completed loads with a difference: the outcomes do not add up to the number of
   * records read, or this number differs from the number of records received.
   */
  readonly differences: number;
}

/*
 * Reads every stored load: 0.6 s for a million, so it must not run often.
 */
const rowsStatement = `
  select
    entity,
    ${recordOutcomes.map((outcome) => `coalesce(sum(rows_${outcome}) filter (where not dry_run), 0)::bigint as ${outcome}`)},
    count(*) filter (
      where status = 'completed' and (rows_read <> total_rows or rows_read <> ${outcomeColumns.join(' + ')})
    ) as differences
  from loads
  group by entity`;

export function readLoadRows(watch: pg.Pool): Promise<LoadRows[]> {
  return readFigures(watch, rowsStatement);
}

interface EnvironmentNeeds extends NeedCounts {
  readonly environment: string;
  readonly environmentId: number;
}

/**
 * Number of the latest jobs that are searched for failures. This limit keeps the cost from growing
 * with the number of stored jobs.
 */
const failuresAmong = 10_000;

const needsStatement = `
  select
    e.name as environment, e.environment_id as "environmentId",
    "failedJobs", "failedJob", "heldLoads", "heldJob", "refusedRecords", "refusedJobs", "refusedJob"
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
      case when count(*) = 1 then min(l.job_id::text) end as "refusedJob"
    from loads l
    cross join lateral count_mended(l.load_id) as mended
    where l.environment_id = e.environment_id and l.status = 'completed' and l.rows_rejected > mended
      and not l.dry_run
  ) of_rejects
  where $1::int is null or e.environment_id = $1
  order by e.name`;

export function readNeeds(pool: pg.Pool, environmentId: number | null): Promise<EnvironmentNeeds[]> {
  return readFigures(pool, needsStatement, [environmentId]);
}

export interface ServerFacts {
  readonly version: string;
  readonly number: number;
  readonly encoding: string;
  readonly readOnly: boolean;
  readonly role: string;
  readonly mayCreate: boolean;
  /** Schemas of sluice that belong to a role whose permissions the current role lacks. */
  readonly foreign: readonly string[];
  readonly missing: number;
  /** `most`: connections that the role may open. `used`: connections of other programs. */
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
