import { ConflictError } from '../domain/errors.ts';
import { jobFields } from '../domain/job-fields.ts';
import { type TaskClaim, type TaskFailure, taskFields } from '../domain/task.ts';
import { startLane } from '../load/lane.ts';
import {
  addStep,
  beginDeletion,
  completeDeletion,
  type DeletionWork,
  failDeletion as markFailed,
} from '../postgres/stores/deletions.ts';
import { nameTaskSession } from '../postgres/stores/task-sessions.ts';
import { inTransaction } from '../postgres/transaction.ts';
import { removeReplaced } from '../retention/prune-events.ts';
import { clearReferences } from './clear-references.ts';
import type { Attempt, DeletionContext } from './context.ts';
import { deleteProfiles } from './delete-profiles.ts';
import { deleteMatchingRejects } from './delete-rejects.ts';
import { eraseArchived } from './erase-archived.ts';
import { removeExports, removeKeptFiles } from './remove-files.ts';

const notOurs = 'another worker has the deletion, or it has ended';

/**
 * Does one deletion whose turn it is: profiles with what hangs on them, refused records, kept files, exports if asked; then the next of
 * the lane. Once `signal` is aborted it stops at the next step, and whoever takes it goes on from there.
 */
export async function runDeletion(
  context: DeletionContext,
  claim: TaskClaim,
  signal: AbortSignal,
): Promise<void> {
  const work = await beginDeletion(context.db, claim);
  if (work === null) throw new ConflictError(notOurs);
  const attempt = startAttempt(context, claim, work, signal);
  // First, since an id of which there is nothing but archived events is one that was found.
  const archived = await eraseArchived(attempt);
  await deleteProfiles(attempt);
  if (work.entity === 'companies') await clearReferences(attempt);
  // What was archived meanwhile.
  await eraseArchived(attempt, archived);
  await removeReplaced(context);
  await deleteMatchingRejects(attempt);
  await removeKeptFiles(attempt);
  if (work.purgeExports) await removeExports(attempt);
  await complete(context, claim);
  await startLane(context, claim.environmentId);
}

function startAttempt(
  context: DeletionContext,
  claim: TaskClaim,
  { entity }: DeletionWork,
  signal: AbortSignal,
): Attempt {
  return {
    context,
    deletion: { deletionId: claim.subjectId, environmentId: claim.environmentId, entity },
    async step(work) {
      signal.throwIfAborted();
      return inTransaction(context.pool, async ({ db }) => {
        await nameTaskSession(db, claim);
        const done = await work(db);
        if (await addStep(db, claim, done)) return done;
        throw new ConflictError(notOurs);
      });
    },
    goOn: () => signal.throwIfAborted(),
  };
}

/** This commit waits for the disk. */
async function complete(context: DeletionContext, claim: TaskClaim): Promise<void> {
  await inTransaction(context.pool, async ({ db }) => {
    if (!(await completeDeletion(db, claim))) throw new ConflictError(notOurs);
  });
  context.log.info(taskFields(claim), 'deletion completed');
}

/** Ends a deletion as failed, and starts the next of its lane. Does nothing if it has ended already. */
export async function failDeletion(
  context: DeletionContext,
  deletionId: number,
  failure: TaskFailure,
): Promise<void> {
  const ended = await inTransaction(context.pool, ({ db }) => markFailed(db, deletionId, failure));
  if (ended === null) return;
  context.log.error({ ...jobFields(ended), code: failure.code }, `deletion failed: ${failure.message}`);
  await startLane(context, ended.environmentId);
}
