import { inputError } from '../domain/errors.ts';
import type { OnDrift } from '../domain/load.ts';
import { type Database, inTransaction } from '../postgres/database.ts';
import { claimJobAction } from '../postgres/stores/idempotency.ts';
import { lockLane } from '../postgres/stores/lanes.ts';
import { requireLoad } from '../postgres/stores/read-loads.ts';
import { queueApply } from '../postgres/stores/running-loads.ts';
import type { LoadContext } from './context.ts';
import { startLane } from './end-load.ts';
import { requireNoDeletionSince } from './retry-load.ts';

/**
 * Queues a plan to be loaded, behind what was accepted since: the same job, file and mapping. At its turn it is looked whether anything
 * has changed since (`beginLoad`). Does nothing if the same idempotency key asked before.
 * Throws `InputError`: `not_found`, `job_not_appliable`, `plan_already_applied`, `job_expired` as of a retry, `idempotency_conflict`.
 */
export async function applyPlan(
  context: LoadContext,
  environmentId: number,
  jobId: string,
  onDrift: OnDrift,
  idempotencyKey: string | null = null,
): Promise<void> {
  const again = await inTransaction(context.pool, async ({ db }) => {
    const before = await claimJobAction(db, environmentId, `apply ${onDrift}`, jobId, idempotencyKey);
    if (before !== null) return true;
    await lockLane(db, environmentId);
    if (!(await queueApply(db, environmentId, jobId, onDrift)))
      throw await notAppliable(db, environmentId, jobId);
    await requireNoDeletionSince(db, environmentId, jobId);
    return false;
  });
  if (again) return;
  context.log.info({ job_id: jobId }, 'plan queued to be applied');
  await startLane(context, environmentId);
}

async function notAppliable(db: Database, environmentId: number, jobId: string): Promise<Error> {
  const { pass, plan, status, hasFile, ...load } = await requireLoad({ db }, environmentId, jobId);
  const details = `job_id: ${jobId}`;
  const isPlan = pass === 'plan' || pass === 'apply';
  if (!isPlan && (plan?.appliedAt ?? null) !== null)
    return inputError('plan_already_applied', 'the plan was applied already', details);
  if (pass === 'apply' && (status === 'queued' || status === 'processing'))
    return inputError('plan_already_applied', 'the plan is being applied', details);
  if (!isPlan) return inputError('job_not_appliable', 'the job is no plan', details);
  if (!hasFile) {
    return inputError('job_expired', 'the file of this job has expired; send it again', details);
  }
  const why = load.failure === null ? `the plan is ${status}` : `the plan failed: ${load.failure.message}`;
  return inputError('job_not_appliable', why, details);
}
