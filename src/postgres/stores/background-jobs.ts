import { sql } from 'kysely';
import type { Database } from '../database.ts';

/* Background jobs of every kind, as the view `background_jobs` lists them. */

/** The condition on `loads` of loads_rejects_idx. Records that an amendment refuses still wait in its parent. */
const waitsToBeMended = sql<boolean>`(
  loads.status = 'completed' and loads.rows_rejected > 0 and not loads.dry_run and loads.amends is null
)`;

export interface JobFilter {
  readonly types?: readonly string[] | undefined;
  readonly statuses?: readonly string[] | undefined;
  /** Accepted at or after. */
  readonly since?: Date | undefined;
  /** Accepted before. */
  readonly until?: Date | undefined;
  /** Part of the name of a load's file, in any case. */
  readonly filename?: string | undefined;
  /** Hex, of a load's file as received. */
  readonly sha256?: string | undefined;
  /** Id of the API key that started it. */
  readonly key?: string | undefined;
  readonly requestId?: string | undefined;
  /** Of the request that made or changed it, in the last 24 hours. */
  readonly idempotencyKey?: string | undefined;
  /** Loads with refused records that wait to be mended. */
  readonly hasRejects?: boolean | undefined;
}

/** The jobs of an environment that match. */
function matchingJobs(db: Database, environmentId: number, filter: JobFilter) {
  const { types, statuses, since, until, filename, sha256, key, requestId, idempotencyKey, hasRejects } =
    filter;
  let jobs = db.selectFrom('background_jobs').where('environment_id', '=', environmentId);
  if (types !== undefined) jobs = jobs.where('type', 'in', types);
  if (statuses !== undefined) jobs = jobs.where('status', 'in', statuses);
  if (since !== undefined) jobs = jobs.where('accepted_at', '>=', since);
  if (until !== undefined) jobs = jobs.where('accepted_at', '<', until);
  if (filename !== undefined)
    jobs = jobs.where('filename', 'ilike', `%${filename.replace(/[\\%_]/g, '\\$&')}%`);
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
        .where(waitsToBeMended),
    );
  }
  return jobs;
}

/** Ids of jobs, newest first. `after` is the job id at which the page before ended; `total` counts the jobs of all pages. */
export async function pageJobIds(
  db: Database,
  environmentId: number,
  filter: JobFilter,
  page: { readonly limit: number; readonly after: string | null },
): Promise<{ readonly ids: readonly string[]; readonly total: number; readonly next: string | null }> {
  const matching = matchingJobs(db, environmentId, filter);
  const { total } = await matching
    .select((eb) => eb.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow();
  let rows = matching
    .select('job_id')
    .orderBy('job_id', 'desc')
    .limit(page.limit + 1);
  if (page.after !== null) rows = rows.where('job_id', '<', page.after);
  // Columns of a view are nullable to the generated types.
  const found = (await rows.execute()).flatMap((row) => row.job_id ?? []);
  const ids = found.slice(0, page.limit);
  return { ids, total, next: found.length > page.limit ? (ids.at(-1) ?? null) : null };
}

export type JobAction = 'cancel' | 'retry';

/** Of the jobs that match, those with which it can be done as they stand, oldest first; `limit` of them at most. */
export async function findActionable(
  db: Database,
  environmentId: number,
  action: JobAction,
  filter: JobFilter,
  { limit, withExports }: { readonly limit: number; readonly withExports: boolean },
): Promise<string[]> {
  const able = action === 'cancel' ? 'is_cancellable' : 'is_retryable';
  let jobs = matchingJobs(db, environmentId, filter).where(able, '=', true);
  if (!withExports) jobs = jobs.where('type', '<>', 'export');
  const rows = await jobs.select('job_id').orderBy('job_id').limit(limit).execute();
  return rows.flatMap((row) => row.job_id ?? []);
}

/** Reads as many entries of an index as there are unfinished jobs, and no more than count. */
export async function hasQueueRoom(db: Database, environmentId: number, most: number): Promise<boolean> {
  const of = (table: 'loads' | 'exports' | 'deletions') => sql`(
    select count(*)
    from (
      select 1
      from ${sql.table(table)}
      where environment_id = ${environmentId} and status in ('queued', 'processing')
      limit ${most}
    ) unfinished
  )`;
  const { rows } = await sql<{ unfinished: number }>`
    select ${of('loads')} + ${of('exports')} + ${of('deletions')} as unfinished`.execute(db);
  return (rows[0]?.unfinished ?? 0) < most;
}
