import { ringForDeliveries } from '../notifications/record-end.ts';
import type { Database } from '../postgres/database.ts';
import { endRun, type RunEnd } from '../postgres/stores/schedule-runs.ts';
import { inTransaction } from '../postgres/transaction.ts';
import type { ScheduleContext } from './context.ts';
import { recordRunEnd } from './record-run-end.ts';

/**
 * Ends a run that is in one of the states; false if it is in none. Who is to be told of it, and what `alongside` writes,
 * commit with the end.
 */
export async function endRunAndTell(
  context: ScheduleContext,
  runId: number,
  end: RunEnd,
  from: Parameters<typeof endRun>[3],
  alongside?: (db: Database) => Promise<void>,
): Promise<boolean> {
  const due = await inTransaction(context.pool, async ({ db }) => {
    if (!(await endRun(db, runId, end, from))) return null;
    const told = await recordRunEnd(context, db, runId);
    await alongside?.(db);
    return told;
  });
  if (due !== null) await ringForDeliveries(context, due);
  return due !== null;
}
