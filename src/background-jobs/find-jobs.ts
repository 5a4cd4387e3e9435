import { type Deletion, deletionTypes } from '../domain/deletion.ts';
import { inputError } from '../domain/errors.ts';
import type { Export } from '../domain/export.ts';
import { type Load, type LoadStatus, loadTypes } from '../domain/load.ts';
import { readLoads, requireLoad } from '../load/inspect-load.ts';
import type { Database } from '../postgres/database.ts';
import { readExports } from '../postgres/ledger/read-exports.ts';
import { readDeletions } from '../postgres/stores/deletions.ts';

/** Every kind of background job there is. */
export const jobTypes = [...loadTypes, 'export', ...deletionTypes] as const;
export type JobType = (typeof jobTypes)[number];

/** Whatever runs in the background. */
export type Job =
  | { readonly kind: 'load'; readonly jobId: string; readonly load: Load }
  | { readonly kind: 'export'; readonly jobId: string; readonly export: Export }
  | { readonly kind: 'deletion'; readonly jobId: string; readonly deletion: Deletion };

interface Context {
  readonly db: Database;
}

/** Throws `InputError` `not_found`, also for another environment's job. */
export async function requireJob(context: Context, environmentId: number, jobId: string): Promise<Job> {
  const [job] = await readJobs(context, environmentId, [jobId]);
  if (job === undefined) throw inputError('not_found', 'there is no such job', `job_id: ${jobId}`);
  // Alone it is told its place in the queue.
  return job.kind === 'load' ? { ...job, load: await requireLoad(context, environmentId, jobId) } : job;
}

export interface JobFilter {
  readonly type?: JobType | undefined;
  readonly status?: LoadStatus | undefined;
  /** Accepted at or after. */
  readonly since?: Date | undefined;
}

export interface JobPage {
  readonly jobs: readonly Job[];
  /** Jobs that match, on all pages. */
  readonly total: number;
  /** Job id to continue after, or null on the last page. */
  readonly next: string | null;
}

/** Newest first. `after` is the job id at which the page before ended. */
export async function listJobs(
  context: Context,
  environmentId: number,
  { type, status, since }: JobFilter,
  page: { readonly limit: number; readonly after: string | null },
): Promise<JobPage> {
  let matching = context.db.selectFrom('background_jobs').where('environment_id', '=', environmentId);
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
  const ids = (await rows.execute()).flatMap((row) => row.job_id ?? []);
  const shown = ids.slice(0, page.limit);
  const jobs = (await readJobs(context, environmentId, shown)).sort((a, b) => (a.jobId < b.jobId ? 1 : -1));
  return { jobs, total, next: ids.length > page.limit ? (shown.at(-1) ?? null) : null };
}

/** In no order. */
async function readJobs(context: Context, environmentId: number, jobIds: readonly string[]): Promise<Job[]> {
  const loads = await readLoads(context, environmentId, jobIds);
  const exports = loads.length === jobIds.length ? [] : await readExports(context.db, environmentId, jobIds);
  const deletions =
    loads.length + exports.length === jobIds.length
      ? []
      : await readDeletions(context.db, environmentId, jobIds);
  return [
    ...loads.map((load) => ({ kind: 'load' as const, jobId: load.jobId, load })),
    ...exports.map((each) => ({ kind: 'export' as const, jobId: each.jobId, export: each })),
    ...deletions.map((deletion) => ({ kind: 'deletion' as const, jobId: deletion.jobId, deletion })),
  ];
}
