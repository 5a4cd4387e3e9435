import { jobFields } from '../domain/job-fields.ts';
import { takeDueChunks } from '../postgres/ledger/chunks.ts';
import { startNext } from '../postgres/ledger/lanes.ts';
import { inTransaction } from '../postgres/transaction.ts';
import type { LoadContext } from './context.ts';

/** Chunks told to the queue at once; the reconciler tells the rest as these get done. */
const window = 1_000;
const windowWhenStalled = 8;

/** Starts the next load or deletion of an environment's lane, if none runs, and rings for it. */
export async function dispatchLane(context: LoadContext, environmentId: number): Promise<void> {
  const due = await inTransaction(context.pool, async ({ db }) => {
    const next = await startNext(db, environmentId);
    return (
      next && { ...next, chunks: next.kind === 'load' ? await takeDueChunks(db, next.id, 0, window) : [] }
    );
  });
  if (due === null) return;
  if (due.kind === 'deletion') {
    context.log.info(jobFields(due), 'deletion starts');
    await ringQuietly(context, () => context.bell.ringDeletion(due.id, 0));
    return;
  }
  context.log.info({ ...jobFields(due), chunks: due.chunks.length }, 'load starts');
  await ringQuietly(context, () => context.bell.ringChunks(due.id, due.chunks));
}

/**
 * Tells the queue about chunks that are due and that it was not told of lately. `stalled` says that none of the load's
 * chunks is under way: then a few are rung for as if they never had been.
 */
export async function dispatchChunks(
  context: LoadContext,
  loadId: number,
  olderThanMs: number,
  stalled: boolean,
): Promise<void> {
  const due = await takeDueChunks(context.db, loadId, olderThanMs, stalled ? windowWhenStalled : window);
  if (due.length === 0) return;
  await ringQuietly(context, () => context.bell.ringChunks(loadId, due, stalled ? 'again' : 'once'));
}

/** A queue that is away is no error here: what is due stands in the ledger, and the reconciler rings again. */
export async function ringQuietly(context: LoadContext, ring: () => Promise<void>): Promise<void> {
  try {
    await ring();
  } catch (error) {
    context.log.warn({ err: error }, 'the queue is away; the ledger will be dispatched again');
  }
}
