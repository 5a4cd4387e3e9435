import type pg from 'pg';
import type { LoadChunk } from '../../api/load.ts';
import type { ShownJob } from '../../api/render.ts';
import {
  LIVE_RECENT_JOBS,
  MAX_LIVE_CHUNKS,
  MAX_LIVE_UNFINISHED_JOBS,
  READ_TIMEOUT_MS,
} from '../../domain/limits.ts';
import { withTimeout } from '../pool.ts';
import { isLiveText, openSessionsText } from './api-keys.ts';

/* Live views share one statement, however many watch and whatever they watch. */

export interface LiveQuestion {
  readonly environments: readonly number[];
  readonly jobs: readonly string[];
  /** Loads of which the chunks are watched; of `allChunks` every one, of the others those that may have changed. */
  readonly chunks: readonly string[];
  readonly allChunks: readonly string[];
  readonly keys: readonly string[];
}

export interface LiveJob extends Omit<ShownJob, 'acceptedAt' | 'startedAt' | 'endedAt'> {
  readonly environmentId: number;
  readonly completedRows: number;
  readonly counts: Readonly<Record<string, number>> | null;
  readonly acceptedAt: string;
  readonly startedAt: string | null;
  /** The completed rows from before that work. */
  readonly rowsBefore: number;
  readonly endedAt: string | null;
  readonly failureCode: string | null;
  readonly failureMessage: string | null;
  readonly lastError: string | null;
  readonly attempts: number;
  readonly dryRun: boolean;
}

/** A chunk as the API shows it, and its job. */
export type LiveChunk = LoadChunk & { readonly jobId: string };

export interface LiveAnswer {
  readonly jobs: readonly LiveJob[];
  readonly chunks: readonly LiveChunk[];
  /** All waiting jobs of each environment in the query, including those that are not among `jobs`. */
  readonly queued: readonly { readonly environmentId: number; readonly count: number }[];
  readonly keys: readonly string[];
}

const time = (column: string) => `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

/** The newest jobs of the environments, the unfinished ones, and those that were asked for. */
const wanted = `
  select n.job_id
  from unnest($1::int[]) w (environment_id)
  cross join lateral (
    (
      select job_id
      from background_jobs
      where environment_id = w.environment_id
      order by job_id desc
      limit ${LIVE_RECENT_JOBS}
    )
    union
    (
      select job_id
      from background_jobs
      where environment_id = w.environment_id and status in ('queued', 'processing')
      order by job_id
      limit ${MAX_LIVE_UNFINISHED_JOBS}
    )
  ) n
  union
  select unnest($2::uuid[])`;

/** An array, since the planner then finds the jobs by their index in each table, however many are kept. */
const jobsPart = `
  select
    environment_id as "environmentId", job_id as "jobId", type, status, filename, file_size as "fileSize",
    total as "totalRows", done as "completedRows", counts,
    ${time('accepted_at')} as "acceptedAt", ${time('started_at')} as "startedAt", rows_before as "rowsBefore",
    ${time('ended_at')} as "endedAt",
    failure_code as "failureCode", failure_message as "failureMessage",
    case when ended_at is null then (
      select case when t.kind = 'chunk' then 'chunk ' || t.part || ': ' else '' end || t.last_error
      from tasks t
      where t.subject_id = j.id and t.last_error is not null
        and t.kind = any (case j.kind when 'load' then array['begin', 'chunk', 'finish'] else array[j.kind] end)
      order by t.part
      limit 1
    ) end as "lastError",
    attempts, dry_run as "dryRun"
  from background_jobs j
  where job_id = any (array(${wanted}))`;

const chunkStart =
  'case when c.done_at is not null then c.started_at when t.lease_until is not null then t.claimed_at end';
const inMs = (column: string) => `date_trunc('milliseconds', ${column})`;

/** Columns of `loads l`, `load_chunks c` and their `tasks t`. */
export const chunkColumns = `
    l.job_id as "jobId", c.chunk_no as chunk,
    case when c.done_at is not null then 'done' when t.lease_until is not null then 'running' else 'waiting' end as state,
    coalesce(nullif(c.attempts, 0), t.attempt, 0) as attempt, greatest(c.losses, coalesce(t.losses, 0)) as losses,
    case when c.done_at is not null then c.worker when t.lease_until is not null then t.worker end as worker,
    ${time(chunkStart)} as start_time, ${time('c.done_at')} as end_time,
    case when c.done_at is not null and c.started_at is not null then
      greatest(0, extract(epoch from ${inMs('c.done_at')} - ${inMs(chunkStart)}) * 1000)::bigint
    end as ms,
    c.row_count as rows, c.byte_end - c.byte_start as bytes, c.rows_rejected as rejected,
    case when c.done_at is null then t.last_error end as last_error`;

/**
 * A chunk that is done stays as it is. Its time is taken just before its transaction ends; those that were longer in
 * committing are found when the load has ended, and all are looked at once more.
 */
const chunksPart = `
  select
    ${chunkColumns}
  from loads l
  cross join lateral (
    select *
    from load_chunks c
    where c.load_id = l.load_id
      and (c.done_at is null or c.done_at > now() - interval '1 minute' or l.job_id = any ($4::uuid[]))
    order by c.chunk_no
    limit ${MAX_LIVE_CHUNKS}
  ) c
  left join tasks t on t.kind = 'chunk' and t.subject_id = c.load_id and t.part = c.chunk_no
  where l.job_id = any ($3::uuid[])`;

const statement = `
  select
    (select coalesce(json_agg(j), '[]') from (${jobsPart}) j) as jobs,
    (select coalesce(json_agg(c), '[]') from (${chunksPart}) c) as chunks,
    (
      select coalesce(json_agg(json_build_object('environmentId', environment_id, 'count', (select count(*) from background_jobs j where j.environment_id = w.environment_id and j.status = 'queued'))), '[]')
      from unnest($1::int[]) w (environment_id)
    ) as queued,
    (
      select coalesce(json_agg(k.key_id), '[]')
      from (
        select key_id from api_keys k where k.key_id = any ($5::text[]) and ${isLiveText}
        union all
        ${openSessionsText('$5::text[]')}
      ) k
    ) as keys`;

/** Costs what is watched, not what is kept. Throws if the database is away, or late. */
export async function readLive(pool: pg.Pool, question: LiveQuestion): Promise<LiveAnswer> {
  const { environments, jobs, chunks, allChunks, keys } = question;
  const { rows } = await pool.query<LiveAnswer>({
    ...withTimeout(statement, READ_TIMEOUT_MS),
    values: [environments, jobs, chunks, allChunks, keys],
  });
  return rows[0] ?? { jobs: [], chunks: [], queued: [], keys: [] };
}
