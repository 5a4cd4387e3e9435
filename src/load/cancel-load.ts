import { sql } from 'kysely';
import { inputError } from '../domain/errors.ts';
import { ringForDeliveries } from '../notifications/record-end.ts';
import type { Database } from '../postgres/database.ts';
import { inTransaction } from '../postgres/transaction.ts';
import { claimJobAction } from './claim-job-action.ts';
import type { LoadContext } from './context.ts';
import { dispatchLane } from './dispatch.ts';
import { requireLoad } from './inspect-load.ts';
import { recordLoadEnd } from './record-load-end.ts';

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
  const { cancelledAt, due } = await inTransaction(context.pool, async ({ db }) => {
    const before = await claimJobAction(db, environmentId, 'cancel', jobId, idempotencyKey);
    if (before !== null) return { cancelledAt: before, due: null };
    const at = await cancel(db, environmentId, jobId);
    return { cancelledAt: at, due: await recordLoadEnd(context, db, environmentId, jobId) };
  });
  if (due === null) return cancelledAt;
  context.log.info({ job_id: jobId }, 'load cancelled');
  await dispatchLane(context, environmentId);
  await ringForDeliveries(context, due);
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
