import { inputError } from '../domain/errors.ts';
import { ALL_RECORDS_REFUSED } from '../domain/load.ts';
import { type Database, inTransaction } from '../postgres/database.ts';
import { isBeforeDeletion } from '../postgres/stores/deletions.ts';
import { claimJobAction } from '../postgres/stores/idempotency.ts';
import { lockLane } from '../postgres/stores/lanes.ts';
import { requeueLoad } from '../postgres/stores/loads.ts';
import { requireLoad } from '../postgres/stores/read-loads.ts';
import type { LoadContext } from './context.ts';
import { startLane } from './end-load.ts';

/**
 * Queues a failed or cancelled load again, behind those accepted since; it goes on with the chunks that are left, a plan begins anew. Does
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
  await startLane(context, environmentId);
}

async function queueAgain(db: Database, environmentId: number, jobId: string): Promise<void> {
  if (!(await requeueLoad(db, environmentId, jobId))) throw await notRetryable(db, environmentId, jobId);
  await requireNoDeletionSince(db, environmentId, jobId);
}

/** Throws `InputError` `job_expired`. */
export async function requireNoDeletionSince(
  db: Database,
  environmentId: number,
  jobId: string,
): Promise<void> {
  if (!(await isBeforeDeletion(db, environmentId, jobId))) return;
  const message =
    'data was deleted since this job was accepted, and it would bring it back; send the file again';
  throw inputError('job_expired', message, `job_id: ${jobId}`);
}

async function notRetryable(db: Database, environmentId: number, jobId: string): Promise<Error> {
  const { status, failure, amends } = await requireLoad({ db }, environmentId, jobId);
  if (amends !== null && status !== 'completed') {
    const message = `what it was to mend is free again: send the mended records to job ${amends} once more`;
    return inputError('job_not_retryable', message, `job_id: ${jobId}`);
  }
  if (failure?.code === ALL_RECORDS_REFUSED) {
    const message = 'every record of the file was refused, and would be again: mend it and send it anew';
    return inputError('job_not_retryable', message, `job_id: ${jobId}`);
  }
  return status === 'failed' || status === 'cancelled'
    ? inputError('job_expired', 'the file of this job has expired; send it again', `job_id: ${jobId}`)
    : inputError('job_not_retryable', `the job is ${status}`, `job_id: ${jobId}`);
}
