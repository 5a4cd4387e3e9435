import { type RawBuilder, sql } from 'kysely';
import { inputError } from '../base/errors.ts';
import { takePage } from '../base/pages.ts';
import { type ExportRequest, toGivenRequest } from '../domain/export.ts';
import type { ListedJob } from '../domain/job.ts';
import { toGivenSource } from '../domain/option-table.ts';
import type { SourceOptions } from '../domain/source.ts';
import type { Origin } from '../domain/task.ts';
import { camel, daysAgo } from '../postgres/columns.ts';
import { countOf, type Database, escapeLike, prepared, selectWhere } from '../postgres/database.ts';
import { isKeyKnown } from './idempotency.ts';

const MAX_SHOWN_PARAMETERS = 100;

/**
 * True for loads with rejects that no mend has corrected. Contains the condition of
 * loads_rejects_idx.
 */
const hasRefused = sql<boolean>`(
  loads.status = 'completed' and loads.rows_rejected > 0 and not loads.dry_run
  and loads.rows_rejected > count_mended(loads.load_id)
)`;

export interface JobFilter {
  readonly types?: readonly string[] | undefined;
  readonly statuses?: readonly string[] | undefined;
  /** Inclusive. */
  readonly since?: Date | undefined;
  /** Exclusive. */
  readonly until?: Date | undefined;
  readonly filename?: string | undefined;
  readonly sha256?: string | undefined;
  readonly key?: string | undefined;
  readonly requestId?: string | undefined;
  /** The key with which a request created or changed the job in the last 24 hours. */
  readonly idempotencyKey?: string | undefined;
  readonly hasRejects?: boolean | undefined;
}

function matchingJobs(db: Database, environmentId: number, filter: JobFilter) {
  const { types, statuses, since, until, filename, sha256, key, requestId, idempotencyKey, hasRejects } =
    filter;
  let jobs = selectWhere(db, 'background_jobs', { environmentId });
  if (types !== undefined) jobs = jobs.where('type', 'in', types);
  if (statuses !== undefined) jobs = jobs.where('status', 'in', statuses);
  if (since !== undefined) jobs = jobs.where('accepted_at', '>=', since);
  if (until !== undefined) jobs = jobs.where('accepted_at', '<', until);
  if (filename !== undefined)
    jobs = jobs.where('kind', '=', 'load').where('filename', 'ilike', `%${escapeLike(filename)}%`);
  if (sha256 !== undefined) jobs = jobs.where('sha256', '=', Buffer.from(sha256, 'hex'));
  if (key !== undefined) jobs = jobs.where('origin', '=', 'api_key').where('origin_name', '=', key);
  if (requestId !== undefined) jobs = jobs.where('request_id', '=', requestId);
  if (idempotencyKey !== undefined) {
    jobs = jobs.where('job_id', 'in', ({ selectFrom }) =>
      selectFrom('idempotency_keys')
        .select('idempotency_keys.job_id')
        .where('environment_id', '=', environmentId)
        .where('idempotency_key', '=', idempotencyKey),
    );
  }
  if (hasRejects === true) {
    jobs = jobs.where('job_id', 'in', ({ selectFrom }) =>
      selectFrom('loads')
        .select('loads.job_id')
        .where('loads.environment_id', '=', environmentId)
        .where(hasRefused),
    );
  }
  return jobs;
}

/**
 * Lists the jobs after the job `after`, newest first. `total` is the number of jobs on all pages.
 */
export async function pageJobs(
  db: Database,
  environmentId: number,
  filter: JobFilter,
  page: { readonly limit: number; readonly after: string | null; readonly offset?: number },
) {
  const matching = matchingJobs(db, environmentId, filter);
  const { total } = await matching
    .select((eb) => eb.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow();
  let rows = matching
    .select(
      camel('job_id', 'type', 'status', 'filename', 'file_size', 'accepted_at', 'started_at', 'ended_at'),
    )
    .select(['counts', 'origin', 'origin_name as originName'])
    .select([sql`case when kind = 'export' then done else total end`.as('totalRows')])
    .orderBy('job_id', 'desc')
    .limit(page.limit + 1)
    .offset(page.offset ?? 0)
    // Generated types make all columns of views nullable.
    .$castTo<ListedJob>();
  if (page.after !== null) rows = rows.where('job_id', '<', page.after);
  const { items: jobs, next } = takePage(await rows.execute(), page.limit, ({ jobId }) => jobId);
  return { jobs, total, next };
}

/** Counts at most `max` unfinished jobs. */
async function hasQueueRoom(db: Database, environmentId: number, max: number): Promise<boolean> {
  const unfinished = await countOf(prepared(db))`
    select count(*)
    from (
      select 1
      from background_jobs
      where environment_id = ${environmentId} and status in ('queued', 'processing')
      limit ${max}
    ) unfinished`;
  return unfinished < max;
}

/** Part of a job's document that all kinds of jobs share. */
export interface JobHistory {
  readonly requestId: string | null;
  readonly origin: Origin | null;
  readonly options: Readonly<Record<string, unknown>>;
  readonly optionsCut: boolean;
  readonly phases: readonly { readonly phase: string; readonly at: Date }[];
}

interface HistoryRow extends Omit<JobHistory, 'origin' | 'optionsCut' | 'phases'> {
  readonly origin: Origin['kind'] | null;
  readonly originName: string | null;
  readonly status: string;
  readonly endedAt: Date | null;
  readonly times: readonly { readonly phase: string; readonly at: string | null }[];
}

/** @throws InputError `not_found` if the job does not exist or belongs to another environment */
export async function readJobHistory(
  db: Database,
  environmentId: number,
  jobId: string,
): Promise<JobHistory> {
  const result = await historyOf(environmentId, jobId).execute(prepared(db));
  const [row] = result.rows;
  if (row === undefined) throw inputError('not_found', 'There is no such job', `job_id: ${jobId}`);
  const { requestId, origin, originName, status, endedAt, times } = row;
  // `ended_at` is the start of the transaction that ended the job. The phases of the job may have
  // later times.
  const last = endedAt?.getTime() ?? Number.POSITIVE_INFINITY;
  const reached = times.flatMap(({ phase, at }) =>
    at === null ? [] : [{ phase, at: new Date(Math.min(Date.parse(at), last)) }],
  );
  reached.sort((one, other) => one.at.getTime() - other.at.getTime());
  if (endedAt !== null) reached.push({ phase: status, at: endedAt });
  const { options, optionsCut } = showOptions(named(row.options));
  return {
    requestId,
    origin: origin === null ? null : { kind: origin, name: originName },
    options,
    // The request of an export is `null` if it is too long to show.
    optionsCut: optionsCut || row.options['request'] === null,
    phases: reached,
  };
}

function phases(times: Readonly<Record<string, string>>): RawBuilder<unknown> {
  const pairs = Object.entries(times).map(
    ([phase, time]) => sql`json_build_object('phase', ${sql.lit(phase)}, 'at', ${sql.raw(time)})`,
  );
  return sql`json_build_array(${sql.join(pairs)})`;
}

const loadPhases = phases({
  accepted: 'accepted_at',
  started: 'started_at',
  planned: 'plan_ended_at',
  applied: 'applied_at',
  resumed: 'nullif(work_started_at, started_at)',
  merged: `case when pass in ('load', 'dry_run') and chunks_done = chunk_count then (
    select max(done_at) from load_chunks c where c.load_id = loads.load_id
  ) end`,
  repeats_resolved: 'repeats_resolved_at',
  held: 'held_at',
  decided: 'decided_at',
});
const exportPhases = phases({ accepted: 'requested_at', started: 'started_at', snapshot: 'snapshot_at' });
const deletionPhases = phases({ accepted: 'accepted_at', started: 'started_at' });

function historyOf(environmentId: number, jobId: string): RawBuilder<HistoryRow> {
  const job = sql`request_id as "requestId", origin, origin_name as "originName", status, ended_at as "endedAt"`;
  const isJob = sql`environment_id = ${environmentId} and job_id = ${jobId}`;
  return sql<HistoryRow>`
    select
      ${job}, ${loadPhases} as times,
      json_build_object(
        'entity', entity, 'map', column_map, 'preset', preset, 'max_errors', max_errors, 'max_changed', max_changed,
        'max_removed_values', max_removed_values, 'guard', guard, 'dry_run', pass = 'dry_run',
        'plan', pass in ('plan', 'apply') or applied_at is not null, 'source', source_options,
        'format', coalesce(read_as ->> 'format', case when header is null then 'ndjson' else 'csv' end), 'file_of', file_of
      ) as options
    from loads
    left join load_guards using (load_id)
    left join load_lineage using (load_id)
    left join load_plans using (load_id)
    where ${isJob}
    union all
    select
      ${job}, ${exportPhases},
      json_build_object(
        'request', case when pg_column_size(request) < 65536 then request end, 'retention_days', retention_days
      )
    from exports
    where ${isJob}
    union all
    select ${job}, ${deletionPhases}, (jsonb_build_object('entity', entity, 'purge_exports', purge_exports, 'ids', ids_requested) || options)::json
    from deletions
    where ${isJob}`;
}

/** Gives the options the names that they have in requests. */
function named({ source, request, ...rest }: HistoryRow['options']): object {
  if (source !== undefined) return { ...rest, ...toGivenSource(source as SourceOptions) };
  return request == null ? rest : { ...toGivenRequest(request as ExportRequest), ...rest };
}

export function showOptions(options: object): Pick<JobHistory, 'options' | 'optionsCut'> {
  const shown = shorten(options) as JobHistory['options'];
  return { options: shown, optionsCut: JSON.stringify(shown) !== JSON.stringify(options) };
}

function shorten(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, MAX_SHOWN_PARAMETERS).map(shorten);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, shorten(part)]));
}

const retentionDays = [
  ['idempotency_keys', 'created_at', 1],
  // A killed worker's row is kept for an hour.
  ['workers', 'seen_at', 1 / 24],
] as const;

export async function forgetOld(db: Database): Promise<void> {
  for (const [table, column, days] of retentionDays) {
    await sql`delete from ${sql.table(table)} where ${sql.ref(column)} < ${daysAgo(days)}`.execute(db);
  }
}

/**
 * Refuses a request if the environment has too many unfinished jobs. A request with a known
 * idempotency key is not refused, because it gets the earlier response. n concurrent requests may
 * exceed the limit by n.
 * @throws InputError `rate_limited`
 */
export async function requireQueueRoom(
  db: Database,
  environmentId: number,
  idempotencyKey: string | null,
  maxUnfinished: number,
): Promise<void> {
  if (maxUnfinished === 0 || (await hasQueueRoom(db, environmentId, maxUnfinished))) return;
  if (idempotencyKey !== null && (await isKeyKnown(db, environmentId, idempotencyKey))) return;
  const message = `This environment has ${maxUnfinished} jobs that have not ended; try again when some have`;
  throw inputError('rate_limited', message, 'MAX_QUEUED_JOBS');
}
