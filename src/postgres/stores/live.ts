import type pg from 'pg';
import {
  LIVE_RECENT_JOBS,
  MAX_LIVE_CHUNKS,
  MAX_LIVE_UNFINISHED_JOBS,
  READ_TIMEOUT_MS,
} from '../../domain/limits.ts';
import { withTimeout } from '../pool.ts';
import { isLiveText, openSessionsText } from './api-keys.ts';

/* What live views are made of: one statement, however many watch and whatever they watch. */

export interface LiveQuestion {
  readonly environments: readonly number[];
  readonly jobs: readonly string[];
  /** Loads of which the chunks are watched; of `allChunks` every one, of the others those that may have changed. */
  readonly chunks: readonly string[];
  readonly allChunks: readonly string[];
  readonly keys: readonly string[];
}

export interface LiveJob {
  readonly environmentId: number;
  readonly jobId: string;
  readonly type: string;
  readonly status: string;
  readonly filename: string;
  readonly fileSize: number;
  /** Records of a load, expected rows of an export, ids of a deletion. */
  readonly totalRows: number;
  readonly completedRows: number;
  readonly counts: Readonly<Record<string, number>> | null;
  readonly acceptedAt: string;
  /** The time at which the current work, or the last, began. */
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

export const chunkStates = ['waiting', 'running', 'done'] as const;

export interface LiveChunk {
  readonly jobId: string;
  readonly chunk: number;
  readonly state: (typeof chunkStates)[number];
  readonly attempt: number;
  readonly losses: number;
  readonly worker: string | null;
  readonly startedAt: string | null;
  readonly doneAt: string | null;
  readonly rows: number;
  readonly bytes: number;
  readonly rejected: number | null;
  readonly lastError: string | null;
}

export interface LiveAnswer {
  readonly jobs: readonly LiveJob[];
  readonly chunks: readonly LiveChunk[];
  /** All waiting jobs of each environment in the query, including those that are not among `jobs`. */
  readonly queued: readonly { readonly environmentId: number; readonly count: number }[];
  readonly keys: readonly string[];
}

const time = (column: string) => `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

/** Selects the newest jobs of a table, the unfinished ones, and those that were asked for. */
const wanted = (table: string, id: string) => `
  select n.${id}
  from unnest($1::int[]) w (environment_id)
  cross join lateral (
    (select ${id} from ${table} where environment_id = w.environment_id order by job_id desc limit ${LIVE_RECENT_JOBS})
    union
    (
      select ${id}
      from ${table}
      where environment_id = w.environment_id and status in ('queued', 'processing')
      order by ${id}
      limit ${MAX_LIVE_UNFINISHED_JOBS}
    )
  ) n
  union
  select ${id} from ${table} where job_id = any ($2::uuid[])`;

const lastError = (kinds: string, subject: string) => `(
  select case when t.kind = 'chunk' then 'chunk ' || t.part || ': ' else '' end || t.last_error
  from tasks t
  where t.subject_id = ${subject} and t.kind in (${kinds}) and t.last_error is not null
  order by t.part
  limit 1
)`;

const jobsPart = `
  select
    environment_id as "environmentId", job_id as "jobId", type, status, filename, file_size as "fileSize",
    total_rows as "totalRows", rows_read as "completedRows",
    json_build_object(
      'read', rows_read, 'inserted', rows_inserted, 'updated', rows_updated, 'unchanged', rows_unchanged,
      'superseded', rows_superseded, 'rejected', rows_rejected, 'amended', rows_amended
    ) as counts,
    ${time('accepted_at')} as "acceptedAt", ${time('work_started_at')} as "startedAt", work_rows_before as "rowsBefore",
    ${time('ended_at')} as "endedAt",
    failure_code as "failureCode", failure_message as "failureMessage",
    case when status = 'processing' then ${lastError(`'begin', 'chunk', 'finish'`, 'load_id')} end as "lastError",
    attempts, dry_run as "dryRun"
  from loads
  where load_id in (${wanted('loads', 'load_id')})
  union all
  select
    environment_id, job_id, 'export', status,
    'export-' || to_char(requested_at at time zone 'UTC', 'YYYY-MM-DD') || '.' || format, bytes_written,
    case when ended_at is null then coalesce(rows_expected, rows_written) else rows_written end, rows_written, null,
    ${time('requested_at')}, ${time('started_at')}, 0, ${time('ended_at')}, failure_code, failure_message,
    case when ended_at is null then ${lastError(`'export'`, 'export_id')} end, attempts, false
  from exports
  where export_id in (${wanted('exports', 'export_id')})
  union all
  select
    environment_id, job_id, 'delete_' || entity, status,
    'delete-' || entity || '-' || to_char(accepted_at at time zone 'UTC', 'YYYY-MM-DD'), 0,
    ids_requested, ids_deleted + ids_not_found,
    json_build_object('requested', ids_requested, 'deleted', ids_deleted, 'not_found', ids_not_found),
    ${time('accepted_at')}, ${time('started_at')}, 0, ${time('ended_at')}, failure_code, failure_message,
    case when ended_at is null then ${lastError(`'deletion'`, 'deletion_id')} end, attempts, false
  from deletions
  where deletion_id in (${wanted('deletions', 'deletion_id')})`;

/** Columns of `loads l`, `load_chunks c` and their `tasks t`. */
export const chunkColumns = `
    l.job_id as "jobId", c.chunk_no as chunk,
    case when c.done_at is not null then 'done' when t.lease_until is not null then 'running' else 'waiting' end as state,
    coalesce(nullif(c.attempts, 0), t.attempt, 0) as attempt, greatest(c.losses, coalesce(t.losses, 0)) as losses,
    case when c.done_at is not null then c.worker when t.lease_until is not null then t.worker end as worker,
    ${time(`case when c.done_at is not null then c.started_at when t.lease_until is not null then t.claimed_at end`)} as "startedAt",
    ${time('c.done_at')} as "doneAt",
    c.row_count as rows, c.byte_end - c.byte_start as bytes, c.rows_rejected as rejected,
    case when c.done_at is null then t.last_error end as "lastError"`;

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

const queuedIn = (table: string) =>
  `(select count(*) from ${table} j where j.environment_id = w.environment_id and j.status = 'queued')`;

const statement = `
  select
    (select coalesce(json_agg(j), '[]') from (${jobsPart}) j) as jobs,
    (select coalesce(json_agg(c), '[]') from (${chunksPart}) c) as chunks,
    (
      select coalesce(json_agg(json_build_object('environmentId', environment_id, 'count', ${queuedIn('loads')} + ${queuedIn('exports')} + ${queuedIn('deletions')})), '[]')
      from unnest($1::int[]) w (environment_id)
    ) as queued,
    (
      select coalesce(json_agg(k.key_id), '[]')
      from (
        select key_id from api_keys where key_id = any ($5::text[]) and ${isLiveText}
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
