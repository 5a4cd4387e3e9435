import { sql } from 'kysely';
import { inputError } from '../domain/errors.ts';
import type { Database } from '../postgres/database.ts';
import { inTransaction } from '../postgres/transaction.ts';
import type { LoadContext } from './context.ts';
import { dispatchLane } from './dispatch.ts';
import { requireLoad } from './inspect-load.ts';

/**
 * Queues a failed or cancelled load again, behind those accepted since; it goes on with the chunks that are left.
 * Throws `InputError`: `not_found`, `job_not_retryable`, `job_expired` (its file is gone).
 */
export async function retryLoad(context: LoadContext, environmentId: number, jobId: string): Promise<void> {
  const queued = await inTransaction(context.pool, ({ db }) => queueAgain(db, environmentId, jobId));
  if (!queued) {
    const { status } = await requireLoad(context, environmentId, jobId);
    throw status === 'failed' || status === 'cancelled'
      ? inputError('job_expired', 'the file of this job has expired; send it again', `job_id: ${jobId}`)
      : inputError('job_not_retryable', `the job is ${status}`, `job_id: ${jobId}`);
  }
  context.log.info({ job_id: jobId }, 'load queued again');
  await dispatchLane(context, environmentId);
}

async function queueAgain(db: Database, environmentId: number, jobId: string): Promise<boolean> {
  const load = await db
    .updateTable('loads')
    .set((eb) => ({
      status: 'queued',
      ended_at: null,
      failure_code: null,
      failure_message: null,
      lane_position: sql`nextval('sluice.lane_positions')`,
      attempts: eb('attempts', '+', 1),
      finish_lease_until: null,
      finish_failures: 0,
      // A load that failed for its rejects would fail again at once: retrying says that they are accepted.
      max_errors: sql`case when failure_code = 'too_many_rejects' then null else max_errors end`,
    }))
    .where('environment_id', '=', environmentId)
    .where('job_id', '=', jobId)
    .where('status', 'in', ['failed', 'cancelled'])
    .where('file_ref', 'is not', null)
    .returning('load_id')
    .executeTakeFirst();
  if (load === undefined) return false;
  await db
    .updateTable('load_chunks')
    .set({ state: 'pending', lease_until: null, dispatched_at: null, losses: 0, failures: 0 })
    .where('load_id', '=', load.load_id)
    .where('state', '<>', 'done')
    .execute();
  return true;
}
