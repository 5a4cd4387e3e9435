import { sql } from 'kysely';
import type { Database } from '../database.ts';

/* Background jobs of every kind, as the view `background_jobs` lists them. */

export interface JobFilter {
  readonly type?: string | undefined;
  readonly status?: string | undefined;
  /** Accepted at or after. */
  readonly since?: Date | undefined;
}

/** Ids of jobs, newest first. `after` is the job id at which the page before ended; `total` counts the jobs of all pages. */
export async function pageJobIds(
  db: Database,
  environmentId: number,
  { type, status, since }: JobFilter,
  page: { readonly limit: number; readonly after: string | null },
): Promise<{ readonly ids: readonly string[]; readonly total: number; readonly next: string | null }> {
  let matching = db.selectFrom('background_jobs').where('environment_id', '=', environmentId);
  if (type !== undefined) matching = matching.where('type', '=', type);
  if (status !== undefined) matching = matching.where('status', '=', status);
  if (since !== undefined) matching = matching.where('accepted_at', '>=', since);
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

/** Reads as many entries of an index as there are unfinished jobs, and no more than count. */
export async function hasQueueRoom(db: Database, environmentId: number, most: number): Promise<boolean> {
  const of = (table: 'loads' | 'exports' | 'deletions') => sql`(
    select count(*)
    from (
      select
      from ${sql.table(table)}
      where environment_id = ${environmentId} and status in ('queued', 'processing')
      limit ${most}
    ) unfinished
  )`;
  const { rows } = await sql<{ unfinished: number }>`
    select ${of('loads')} + ${of('exports')} + ${of('deletions')} as unfinished`.execute(db);
  return (rows[0]?.unfinished ?? 0) < most;
}
