import { inputError } from '../domain/errors.ts';
import type { ExportContext } from '../export/context.ts';
import { cancelExport } from '../export/end-export.ts';
import type { LoadContext } from '../load/context.ts';
import { cancelLoad } from '../load/end-load.ts';
import { type Job, requireJob } from './find-jobs.ts';

/**
 * Stops a load or an export that has not ended; returns it as the cancelling left it. With an idempotency key that asked
 * before nothing is done again. Throws `InputError`: `job_not_cancellable`, also for a deletion, `idempotency_conflict`.
 */
export async function cancelFoundJob(
  context: LoadContext & ExportContext,
  environmentId: number,
  job: Job,
  idempotencyKey: string | null = null,
): Promise<Job> {
  const { jobId } = job;
  if (job.kind === 'deletion') {
    throw inputError('job_not_cancellable', 'a deletion is not cancelled', `job_id: ${jobId}`);
  }
  if (job.kind === 'export') {
    const endedAt = await cancelExport(context, environmentId, jobId, idempotencyKey);
    return { ...job, export: { ...job.export, status: 'cancelled', endedAt } };
  }
  const endedAt = await cancelLoad(context, environmentId, jobId, idempotencyKey);
  const after = await requireJob(context, environmentId, jobId);
  const load = after.kind === 'load' ? after.load : job.load;
  // What it was made; since a first such request it may have been retried.
  return { ...job, load: { ...load, status: 'cancelled', endedAt } };
}
