import { sql } from 'kysely';
import { inputError } from '../domain/errors.ts';
import type { LoadContext } from './context.ts';
import { dispatchLane } from './dispatch.ts';
import { requireLoad } from './inspect-load.ts';

/**
 * Stops a load that has not ended; what its finished chunks applied stays. Chunks under way find their load ended
 * at the fence and change nothing. Throws `InputError`: `not_found`, `job_not_cancellable`.
 */
export async function cancelLoad(context: LoadContext, environmentId: number, jobId: string): Promise<void> {
  const cancelled = await context.db
    .updateTable('loads')
    .set({ status: 'cancelled', ended_at: sql`now()`, finish_lease_until: null })
    .where('environment_id', '=', environmentId)
    .where('job_id', '=', jobId)
    .where('status', 'in', ['queued', 'processing'])
    .returning('job_id')
    .executeTakeFirst();
  if (cancelled === undefined) {
    const load = await requireLoad(context, environmentId, jobId);
    throw inputError('job_not_cancellable', `the job is ${load.status} already`, `job_id: ${jobId}`);
  }
  context.log.info({ job_id: jobId }, 'load cancelled');
  await dispatchLane(context, environmentId);
}
