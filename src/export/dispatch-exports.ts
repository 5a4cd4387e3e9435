import { takeDueExports } from '../postgres/ledger/due-exports.ts';
import type { ExportContext } from './context.ts';

/** Exports told to the queue at once; the reconciler tells the rest as these get done. */
const window = 100;

/** Tells the queue about exports that wait and that it was not told of for `olderThanMs`. */
export async function dispatchExports(context: ExportContext, olderThanMs = 5_000): Promise<void> {
  const due = await takeDueExports(context.db, olderThanMs, window);
  for (const { exportId, attempt, isNew } of due) {
    await ringQuietly(context, () => context.bell.ringExport(exportId, attempt, isNew ? 'once' : 'again'));
  }
}

/** A queue that is away is no error here: what is due stands in the ledger, and the reconciler rings again. */
async function ringQuietly(context: ExportContext, ring: () => Promise<void>): Promise<void> {
  try {
    await ring();
  } catch (error) {
    context.log.warn({ err: error }, 'the queue is away; exports will be dispatched again');
  }
}
