import { sql } from 'kysely';
import { inputError } from '../domain/errors.ts';
import type { Database } from '../postgres/database.ts';
import { inTransaction } from '../postgres/transaction.ts';
import { claimJobAction } from './claim-job-action.ts';
import type { LoadContext } from './context.ts';
import { dispatchLane } from './dispatch.ts';
import { requireLoad } from './inspect-load.ts';

/**
 * Stops a load that has not ended; what its finished chunks applied stays. Chunks under way find their load ended
 * at the fence and change nothing. Returns when it was cancelled: before now, if the same idempotency key asked before.
 * Throws `InputError`: `not_found`, `job_not_cancellable`, `idempotency_conflict`.
 */
export async function cancelLoad(
  context: LoadContext,
  environmentId: number,
  jobId: string,
  idempotencyKey: string | null = null,
): Promise<Date> {
  const { cancelledAt, again } = await inTransaction(context.pool, async ({ db }) => {
    const before = await claimJobAction(db, environmentId, 'cancel', jobId, idempotencyKey);
    if (before !== null) return { cancelledAt: before, again: true };
    return { cancelledAt: await cancel(db, environmentId, jobId), again: false };
  });
  if (again) return cancelledAt;
  context.log.info({ job_id: jobId }, 'load cancelled');
  await dispatchLane(context, environmentId);
  return cancelledAt;
}

async function cancel(db: Database, environmentId: number, jobId: string): Promise<Date> {
  const cancelled = await db
    .updateTable('loads')
    .set({ status: 'cancelled', ended_at: sql`now()`, finish_lease_until: null })
    .where('environment_id', '=', environmentId)
    .where('job_id', '=', jobId)
    .where('status', 'in', ['queued', 'processing'])
    .returning(sql<Date>`now()`.as('at'))
    .executeTakeFirst();
  if (cancelled !== undefined) return cancelled.at;
  const { status } = await requireLoad({ db }, environmentId, jobId);
  throw inputError('job_not_cancellable', `the job is ${status} already`, `job_id: ${jobId}`);
}
