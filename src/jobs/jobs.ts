import type pg from 'pg';
import { inputError } from '../base/errors.ts';
import { SHOWN_FAILURES } from '../base/limits.ts';
import { renderDeletionDetail } from '../deletion/deletions.ts';
import { type Deletion, readDeletions } from '../deletion/store.ts';
import { deletionTypes } from '../domain/deletion.ts';
import { loadTypes } from '../domain/load.ts';
import { describeNeeds, type Need, sortNeeds } from '../domain/need.ts';
import type { Origin } from '../domain/task.ts';
import type { ExportContext } from '../export/context.ts';
import { renderExportDetail } from '../export/inspect-exports.ts';
import { cancelExport } from '../export/run-export.ts';
import { type Export, readExports } from '../export/store.ts';
import type { LoadContext } from '../load/context.ts';
import { cancelLoad } from '../load/end.ts';
import { type Load, readLoadResult, readLoads, readShown, requireLoad } from '../load/read-store.ts';
import { renderLoadDetail } from '../load/render-load.ts';
import type { Database } from '../postgres/database.ts';
import { readEventRetention } from '../postgres/retention.ts';
import { readJobHistory } from '../tasks/job-store.ts';
import { readLanes } from '../tasks/lane-store.ts';
import { readLiveWorkers } from '../tasks/worker-store.ts';
import { readBacklog, readNeeds } from '../telemetry/health/store.ts';
import type { Failure, FigureSeam } from '../telemetry/seam.ts';
import { readList } from './overview-store.ts';

/* Shows, cancels and retries jobs of all kinds for the API. `prune.ts` removes expired jobs. */

export const jobTypes = [...loadTypes, 'export', ...deletionTypes] as const;

export type Job =
  | (Load & { readonly kind: 'load' })
  | (Export & { readonly kind: 'export' })
  | (Deletion & { readonly kind: 'deletion' });

interface Context {
  readonly db: Database;
}

/** @throws InputError `not_found`, including for a job of another environment */
export async function requireJob(context: Context, environmentId: number, jobId: string): Promise<Job> {
  const [load] = await readLoads(context, environmentId, [jobId]);
  if (load !== undefined) return { kind: 'load', ...load };
  const [exportJob] = await readExports(context.db, environmentId, [jobId]);
  if (exportJob !== undefined) return { kind: 'export', ...exportJob };
  const [deletion] = await readDeletions(context.db, environmentId, [jobId]);
  if (deletion !== undefined) return { kind: 'deletion', ...deletion };
  throw inputError('not_found', 'There is no such job', `job_id: ${jobId}`);
}

export async function renderJobDetail(
  context: Context & Pick<LoadContext, 'loads'>,
  environmentId: number,
  job: Job,
  baseUrl: string,
) {
  const { db } = context;
  switch (job.kind) {
    case 'load': {
      const shown = await readShown(context, environmentId, job);
      return renderLoadDetail(job, shown, await readLoadResult(db, environmentId, job), baseUrl);
    }
    case 'export':
      return renderExportDetail(job, await readJobHistory(db, environmentId, job.jobId), baseUrl);
    case 'deletion':
      return renderDeletionDetail(job, await readJobHistory(db, environmentId, job.jobId), baseUrl);
  }
}

/**
 * Cancels a load or an export. A held load is discarded. If an earlier request had the same
 * idempotency key, cancels nothing. @throws InputError `job_not_cancellable` (including for a
 * deletion), `idempotency_conflict`
 */
export async function cancelFoundJob(
  context: LoadContext & ExportContext,
  environmentId: number,
  job: Job,
  { by, idempotencyKey = null }: { readonly by: Origin; readonly idempotencyKey?: string | null },
): Promise<Job> {
  const { jobId } = job;
  if (job.kind === 'deletion') {
    throw inputError('job_not_cancellable', 'A deletion cannot be cancelled', `job_id: ${jobId}`);
  }
  if (job.kind === 'export') {
    const endedAt = await cancelExport(context, environmentId, jobId, idempotencyKey);
    return { ...job, status: 'cancelled', endedAt };
  }
  const endedAt = await cancelLoad(context, environmentId, jobId, idempotencyKey, by);
  const load = await requireLoad(context, environmentId, jobId);
  // The load as it was when cancelled, even if a retry has changed it since.
  return { kind: 'load', ...load, status: 'cancelled', endedAt };
}

/** Only loads can be retried. @throws InputError `not_found`, `job_not_retryable` */
export async function requireRetryable(
  context: Parameters<typeof requireJob>[0],
  environmentId: number,
  jobId: string,
): Promise<Extract<Job, { kind: 'load' }>> {
  const job = await requireJob(context, environmentId, jobId);
  if (job.kind === 'load') return job;
  const message = `${job.kind === 'export' ? 'An export' : 'A deletion'} cannot be retried. Request it again`;
  throw inputError('job_not_retryable', message, `job_id: ${jobId}`);
}

/**
 * Reads the state of all environments. Each query has a deadline. @throws if the database is
 * unavailable
 */
export async function readStatus(watch: pg.Pool, seams: readonly FigureSeam[]) {
  const [workers, backlog, lanes, exports, retries, retention, failures, needs] = await Promise.all([
    readLiveWorkers(watch),
    Promise.all([readBacklog(watch), ...seams.map(({ backlog: figures }) => figures?.read(watch))]),
    readLanes(watch),
    readList(watch, 'exports'),
    readList(watch, 'retries'),
    Promise.all([readEventRetention(watch), ...seams.map(({ retention: figures }) => figures?.read(watch))]),
    readFailures(watch, seams),
    findNeeds(watch, null, seams),
  ]);
  return {
    workers,
    backlog: Object.assign({}, ...backlog),
    lanes,
    exports,
    retries,
    retention: Object.assign({}, ...retention),
    failures,
    needs,
  };
}

async function readFailures(watch: pg.Pool, seams: readonly FigureSeam[]): Promise<Failure[]> {
  const others = seams.map((seam) => seam.failures?.(watch) ?? []);
  const all = (await Promise.all([readList<Failure>(watch, 'failures'), ...others])).flat();
  return all.sort((a, b) => b.endedAt.getTime() - a.endedAt.getTime()).slice(0, SHOWN_FAILURES);
}

export interface EnvironmentNeed {
  readonly environment: string;
  readonly needs: readonly Need[];
}

/**
 * Finds the needs of one environment, or of all if the id is `null`. The time that this takes
 * depends on the number of failures, not on the number of stored records.
 */
export async function findNeeds(
  pool: pg.Pool,
  environmentId: number | null,
  seams: readonly FigureSeam[],
  counted?: { readonly unaccounted: number; readonly failedJobs: number },
): Promise<EnvironmentNeed[]> {
  const others = Promise.all(seams.map((seam) => seam.needs?.(pool, environmentId) ?? []));
  const [rows, otherNeeds] = await Promise.all([readNeeds(pool, environmentId), others]);
  return rows.map(({ environment, environmentId: id, ...counts }) => {
    const needsOfOthers = otherNeeds.flat().filter((need) => need.environmentId === id);
    return { environment, needs: sortNeeds([...describeNeeds({ ...counts, ...counted }), ...needsOfOthers]) };
  });
}
