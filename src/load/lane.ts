import pLimit from 'p-limit';
import { type JobIdentity, jobFields } from '../domain/job-fields.ts';
import type { DueTask } from '../domain/task.ts';
import { startDeletion } from '../postgres/stores/deletions.ts';
import { findLaneHead, idleLanes } from '../postgres/stores/lanes.ts';
import { startLoad } from '../postgres/stores/loads.ts';
import { inTransaction } from '../postgres/transaction.ts';
import { notifyQueue } from '../tasks/task-kind.ts';
import type { LoadContext } from './context.ts';

/** Starts the next load or deletion of an environment's lane, if none runs, and notifies the workers. */
export async function startLane(
  context: Pick<LoadContext, 'pool' | 'queue' | 'log'>,
  environmentId: number,
): Promise<void> {
  const started = await inTransaction(context.pool, async ({ db }) => {
    const head = await findLaneHead(db, environmentId);
    if (head === null) return null;
    const job: (JobIdentity & { readonly tasks: readonly DueTask[] }) | null =
      head.kind === 'load' ? await startLoad(db, head.id) : await startDeletion(db, head.id);
    // Null: it was cancelled since it was looked at.
    return job && { kind: head.kind, ...job };
  });
  if (started === null) return;
  context.log.info(jobFields(started), `${started.kind} starts`);
  await notifyQueue(context, started.tasks);
}

/** A standing lane must not wait for a slow one, nor all of them take every connection. */
const lanesAtATime = 4;

/** Starts every lane in which something waits and nothing runs. */
export async function startIdleLanes(context: LoadContext): Promise<void> {
  const atATime = pLimit(lanesAtATime);
  const idle = await idleLanes(context.db);
  await Promise.all(idle.map((environmentId) => atATime(() => startLane(context, environmentId))));
}

/** After something was accepted. It is safe in the ledger; whoever is slow or away here, the reconciler makes up for. */
export function startLaneSoon(
  context: Pick<LoadContext, 'pool' | 'queue' | 'log'>,
  environmentId: number,
): void {
  startLane(context, environmentId).catch((error: unknown) =>
    context.log.warn({ err: error }, 'a lane could not be started; the reconciler will do it'),
  );
}
