import { ConflictError, Fault, Interrupted } from '../domain/errors.ts';
import { jobFields } from '../domain/job-fields.ts';
import { MAX_DELETION_FAILURES, MAX_TIMEOUTS } from '../domain/limits.ts';
import { dispatchLane } from '../load/dispatch.ts';
import {
  claimDeletion,
  completeDeletion,
  type DeletionClaim,
  failDeletion,
  noteDeletionFailure,
  releaseDeletion,
} from '../postgres/ledger/deletions.ts';
import { describeFailure, isTimeout, isTransient } from '../postgres/sqlstate.ts';
import { inTransaction } from '../postgres/transaction.ts';
import { removeReplaced } from '../retention/prune-events.ts';
import { type Attempt, startAttempt } from './attempt.ts';
import { clearReferences } from './clear-references.ts';
import type { DeletionContext } from './context.ts';
import { deleteProfiles } from './delete-profiles.ts';
import { deleteMatchingRejects } from './delete-rejects.ts';
import { eraseArchived } from './erase-archived.ts';
import { removeExports, removeKeptFiles } from './remove-files.ts';

/**
 * Does one deletion whose turn it is: profiles with what hangs on them, refused records, kept files, exports if asked;
 * then the next of the lane. May be called twice, late, or for one that has ended: false then, there was nothing to do.
 * `stopping` is aborted when the worker is to stop; the deletion is then given back, and goes on where it was.
 */
export async function runDeletion(
  context: DeletionContext,
  deletionId: number,
  stopping: AbortSignal,
): Promise<boolean> {
  if (stopping.aborted) return false;
  const claim = await claimDeletion(context.db, deletionId);
  if (claim === null) return false;
  const attempt = startAttempt(context, claim, stopping);
  try {
    // First, since an id of which there is nothing but archived events is one that was found.
    const archived = await eraseArchived(attempt);
    await deleteProfiles(attempt);
    if (claim.entity === 'companies') await clearReferences(attempt);
    // What was archived meanwhile.
    await eraseArchived(attempt, archived);
    await removeReplaced(context);
    await deleteMatchingRejects(attempt);
    await removeKeptFiles(attempt);
    if (claim.purgeExports) await removeExports(attempt);
    await complete(attempt);
  } catch (error) {
    attempt.end();
    await giveBack(context, claim, error);
    return true;
  } finally {
    attempt.end();
  }
  await dispatchLane(context, claim.environmentId);
  return true;
}

/** This commit waits for the disk. */
async function complete({ context, claim }: Attempt): Promise<void> {
  await inTransaction(context.pool, async ({ db }) => {
    if (!(await completeDeletion(db, claim))) throw new ConflictError('another worker has the deletion');
  });
  context.log.info(jobFields(claim), 'deletion completed');
}

async function giveBack(context: DeletionContext, claim: DeletionClaim, error: unknown): Promise<void> {
  const fields = { ...jobFields(claim), err: error, attempt: claim.attempt };
  if (error instanceof ConflictError) return;
  if (error instanceof Interrupted) {
    context.log.info(jobFields(claim), 'deletion given back; another worker goes on');
    await releaseDeletion(context.db, claim).catch(() => undefined);
    return;
  }
  const message = error instanceof Error ? error.message : String(error);
  if (isTransient(error) && !isTimeout(error)) {
    context.log.warn(fields, 'deletion given back; it will be tried again');
    // If the database is away this fails too, and the lease runs out instead.
    await releaseDeletion(context.db, claim, message).catch(() => undefined);
    return;
  }
  context.log.error(fields, 'an attempt at a deletion failed');
  const failures = await noteDeletionFailure(context.db, claim, message);
  if (failures >= (isTimeout(error) ? MAX_TIMEOUTS : MAX_DELETION_FAILURES) || error instanceof Fault) {
    await endFailed(context, claim.deletionId, describeFailure(error, 'deletion_failed'));
  }
}

/** Ends a deletion as failed, and starts the next of its lane. Does nothing if it has ended already. */
export async function endFailed(
  context: DeletionContext,
  deletionId: number,
  failure: { readonly code: string; readonly message: string },
): Promise<void> {
  const ended = await failDeletion(context.db, deletionId, failure);
  if (ended === null) return;
  context.log.error({ ...jobFields(ended), code: failure.code }, `deletion failed: ${failure.message}`);
  await dispatchLane(context, ended.environmentId);
}
