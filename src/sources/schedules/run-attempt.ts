import { ConflictError } from '../../domain/errors.ts';
import type { TaskClaim, TaskFailure } from '../../domain/task.ts';
import type { Database } from '../../postgres/database.ts';
import { insertRunItem } from '../../postgres/stores/schedule-run-items.ts';
import type { RunWork } from '../../postgres/stores/schedule-runs.ts';
import { renewTask } from '../../postgres/stores/tasks.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import type { ScheduleContext } from './context.ts';

/** An attempt at a run: what is to be done, and the task that fences every write. */
export interface RunAttempt extends RunWork {
  readonly claim: TaskClaim;
}

export const notOurs = 'another worker has the run';

/** Holds the run, if its task is still the attempt's own, until the transaction ends. @throws ConflictError */
export async function holdRun(db: Database, { claim }: RunAttempt): Promise<void> {
  if (!(await renewTask(db, claim))) throw new ConflictError(notOurs);
}

/** Keeps something of the run that has no job, and why. */
export async function keepRefusal(
  { pool }: ScheduleContext,
  run: RunAttempt,
  item: string,
  error: TaskFailure,
): Promise<void> {
  await inTransaction(pool, async ({ db }) => {
    await holdRun(db, run);
    await insertRunItem(db, run.runId, { item, version: null, jobId: null, isNew: false, error });
  });
}
