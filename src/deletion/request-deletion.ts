import { uuidv7 } from 'uuidv7';
import type { Entity } from '../domain/entity.ts';
import { idempotencyConflict } from '../domain/errors.ts';
import { jobFields } from '../domain/job-fields.ts';
import type { Idempotency } from '../ingest/ingest.ts';
import { startLaneSoon } from '../load/lane.ts';
import { claimIdempotencyKey } from '../postgres/ledger/idempotency.ts';
import { insertDeletion } from '../postgres/stores/deletions.ts';
import { lockLane } from '../postgres/stores/lanes.ts';
import { inTransaction } from '../postgres/transaction.ts';
import type { DeletionContext } from './context.ts';
import type { DeletionRequest } from './read-request.ts';

/**
 * Accepts a deletion: ledger first, behind every load that is accepted, then the queue. Returns its job id; that of the
 * first one, if the same idempotency key asked before. Throws `InputError` `idempotency_conflict`.
 */
export async function requestDeletion(
  context: DeletionContext,
  environmentId: number,
  entity: Entity,
  request: DeletionRequest,
  idempotency: Idempotency | null = null,
  requestId: string | null = null,
): Promise<string> {
  const jobId = uuidv7();
  const answer = await inTransaction(context.pool, async ({ db }) => {
    if (idempotency !== null) {
      const { key, digest } = idempotency;
      const claim = await claimIdempotencyKey(db, environmentId, key, digest, jobId);
      if (claim.outcome === 'known' && claim.jobId !== null) return claim.jobId;
      if (claim.outcome !== 'claimed') throw idempotencyConflict();
    }
    // Nobody retries an earlier load from now on: see `retryLoad`.
    await lockLane(db, environmentId);
    await insertDeletion(db, { jobId, requestId, environmentId, entity, ...request });
    return jobId;
  });
  if (answer !== jobId) return answer;
  context.log.info(
    { ...jobFields({ jobId, requestId }), entity, ids: request.ids.length },
    'deletion accepted',
  );
  startLaneSoon(context, environmentId);
  return jobId;
}
