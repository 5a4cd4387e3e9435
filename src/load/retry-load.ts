import { sql } from 'kysely';
import { inputError } from '../domain/errors.ts';
import { ALL_RECORDS_REFUSED } from '../domain/load.ts';
import type { Database } from '../postgres/database.ts';
import { isBeforeDeletion } from '../postgres/deletion/earlier-loads.ts';
import { lockLane } from '../postgres/ledger/lanes.ts';
import { inTransaction } from '../postgres/transaction.ts';
import { claimJobAction } from './claim-job-action.ts';
import type { LoadContext } from './context.ts';
import { dispatchLane } from './dispatch.ts';
import { requireLoad } from './inspect-load.ts';

/**
 * Queues a failed or cancelled load again, behind those accepted since; it goes on with the chunks that are left. Does
 * nothing if the same idempotency key asked before.
 * Throws `InputError`: `not_found`, `job_not_retryable`, `job_expired` (its file is gone, or a deletion was asked for since,
 * which it would undo), `idempotency_conflict`.
 */
export async function retryLoad(
  context: LoadContext,
  environmentId: number,
  jobId: string,
  idempotencyKey: string | null = null,
): Promise<void> {
  const again = await inTransaction(context.pool, async ({ db }) => {
    const before = await claimJobAction(db, environmentId, 'retry', jobId, idempotencyKey);
    if (before === null) {
      await lockLane(db, environmentId);
      await queueAgain(db, environmentId, jobId);
    }
    return before !== null;
  });
  if (again) return;
  context.log.info({ job_id: jobId }, 'load queued again');
  await dispatchLane(context, environmentId);
}

async function queueAgain(db: Database, environmentId: number, jobId: string): Promise<void> {
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
      finish_losses: 0,
      finish_error: null,
      // A load that failed for its rejects would fail again at once: retrying says that they are accepted.
      max_errors: sql`case when failure_code = 'too_many_rejects' then null else max_errors end`,
    }))
    .where('environment_id', '=', environmentId)
    .where('job_id', '=', jobId)
    .where('status', 'in', ['failed', 'cancelled'])
    .where('failure_code', 'is distinct from', ALL_RECORDS_REFUSED)
    .where('file_ref', 'is not', null)
    .returning('load_id')
    .executeTakeFirst();
  if (load === undefined) throw await notRetryable(db, environmentId, jobId);
  if (await isBeforeDeletion(db, environmentId, jobId)) {
    const message =
      'data was deleted since this job was accepted, and it would bring it back; send the file again';
    throw inputError('job_expired', message, `job_id: ${jobId}`);
  }
  await db
    .updateTable('load_chunks')
    .set({
      state: 'pending',
      lease_until: null,
      dispatched_at: null,
      losses: 0,
      failures: 0,
      last_error: null,
    })
    .where('load_id', '=', load.load_id)
    .where('state', '<>', 'done')
    .execute();
}

async function notRetryable(db: Database, environmentId: number, jobId: string): Promise<Error> {
  const { status, failure } = await requireLoad({ db }, environmentId, jobId);
  if (failure?.code === ALL_RECORDS_REFUSED) {
    const message = 'every record of the file was refused, and would be again: mend it and send it anew';
    return inputError('job_not_retryable', message, `job_id: ${jobId}`);
  }
  return status === 'failed' || status === 'cancelled'
    ? inputError('job_expired', 'the file of this job has expired; send it again', `job_id: ${jobId}`)
    : inputError('job_not_retryable', `the job is ${status}`, `job_id: ${jobId}`);
}
