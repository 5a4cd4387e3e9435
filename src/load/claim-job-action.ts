import { createHash } from 'node:crypto';
import { idempotencyConflict } from '../domain/errors.ts';
import type { Database } from '../postgres/database.ts';
import { claimIdempotencyKey } from '../postgres/ledger/idempotency.ts';

/**
 * Claims an Idempotency-Key for doing something to a job; call it in the transaction that does it. Null: it is to be
 * done. A date: that is when it was done, and it must not be done again. Throws `InputError` `idempotency_conflict`.
 */
export async function claimJobAction(
  db: Database,
  environmentId: number,
  action: 'cancel' | 'retry',
  jobId: string,
  idempotencyKey: string | null,
): Promise<Date | null> {
  if (idempotencyKey === null) return null;
  const digest = createHash('sha256')
    .update(JSON.stringify([action, jobId]))
    .digest();
  const claim = await claimIdempotencyKey(db, environmentId, idempotencyKey, digest, jobId);
  if (claim.outcome === 'conflict') throw idempotencyConflict();
  return claim.outcome === 'known' ? claim.claimedAt : null;
}
