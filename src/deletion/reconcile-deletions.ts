import { MAX_DELETION_LOSSES, RECONCILE_MS } from '../domain/limits.ts';
import { ringQuietly } from '../load/dispatch.ts';
import { rescueDeletions, takeDueDeletions } from '../postgres/ledger/deletions.ts';
import { type Rounds, startRounds } from '../rounds.ts';
import type { DeletionContext } from './context.ts';
import { endFailed } from './run-deletion.ts';

/** A deletion that the queue was told of and nobody took is told of again after this long. */
const ringAgainMs = 5_000;

/**
 * Reads the ledger for deletions whose turn it is and that nobody is at, and rings for them. (Standing lanes are for the
 * loads' own reconciler.) Harmless to run anywhere, anytime, twice.
 */
export async function reconcileDeletions(context: DeletionContext): Promise<void> {
  for (const { deletionId, jobId, losses } of await rescueDeletions(context.db)) {
    context.log.warn({ job_id: jobId, losses }, 'deletion taken back from a worker that went silent');
    if (losses < MAX_DELETION_LOSSES) continue;
    const message = `the deletion lost its worker ${losses} times; it may be what kills it`;
    await endFailed(context, deletionId, { code: 'worker_lost', message });
  }
  for (const { deletionId, attempt } of await takeDueDeletions(context.db, ringAgainMs)) {
    await ringQuietly(context, () => context.bell.ringDeletion(deletionId, attempt, 'again'));
  }
}

/** Reconciles at once and then every RECONCILE_MS; errors are logged and the next round tries again. */
export function startDeletionReconciler(context: DeletionContext, everyMs = RECONCILE_MS): Rounds {
  return startRounds(everyMs, async () => {
    await reconcileDeletions(context).catch((error: unknown) =>
      context.log.warn({ err: error }, 'reconciling deletions failed; next round tries again'),
    );
  });
}
