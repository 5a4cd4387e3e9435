import { inputError } from '../domain/errors.ts';
import { type Job, requireJob } from './find-jobs.ts';

/** Of all jobs only loads are retried. Throws `InputError`: `not_found`, `job_not_retryable`. */
export async function requireRetryable(
  context: Parameters<typeof requireJob>[0],
  environmentId: number,
  jobId: string,
): Promise<Extract<Job, { kind: 'load' }>> {
  const job = await requireJob(context, environmentId, jobId);
  if (job.kind === 'load') return job;
  const message = `${job.kind === 'export' ? 'an export' : 'a deletion'} is not retried: ask for it anew`;
  throw inputError('job_not_retryable', message, `job_id: ${jobId}`);
}
