import { ConflictError, FinalFailure } from '../domain/errors.ts';
import { type TaskClaim, taskFields } from '../domain/task.ts';
import { inTransaction } from '../postgres/database.ts';
import { countDrift } from '../postgres/stores/read-plans.ts';
import { beginPass, readBeginning } from '../postgres/stores/running-loads.ts';
import { endTask, renewTask } from '../postgres/stores/tasks.ts';
import { nameTaskSession } from '../postgres/stores/workers.ts';
import { notifyQueue } from '../tasks/task-kind.ts';
import type { LoadContext } from './context.ts';

const notOurs = 'another worker begins the load, or it has ended';

/**
 * Begins a load anew at its turn in the lane: forgets what its last pass left, and makes the tasks of its chunks. Of a plan that is
 * applied, looks first whether anything has changed since; then, unless that was said not to matter, the load fails and nothing is
 * written.
 */
export async function beginLoad(context: LoadContext, claim: TaskClaim): Promise<void> {
  const tasks = await inTransaction(context.pool, async ({ db }) => {
    await nameTaskSession(db, claim);
    const beginning = await readBeginning(db, claim.subjectId);
    if (beginning === null) throw new ConflictError(notOurs);
    const { pass, onDrift } = beginning;
    if (pass === 'apply' && onDrift !== 'proceed') {
      const drifted = await countDrift(db, claim.subjectId);
      if (drifted > 0) throw new FinalFailure(PLAN_DRIFTED, describeDrift(drifted));
    }
    if (!(await renewTask(db, claim))) throw new ConflictError(notOurs);
    const begun = await beginPass(db, claim.subjectId, pass === 'apply' ? 'load' : pass);
    if (!(await endTask(db, claim))) throw new ConflictError(notOurs);
    return begun;
  });
  context.log.info(taskFields(claim), 'load begins anew');
  await notifyQueue(context, tasks);
}

/** `failure.code` of a plan that was to be applied, and of which something has changed since. */
const PLAN_DRIFTED = 'plan_drifted';

function describeDrift(drifted: number): string {
  return `${drifted} ${drifted === 1 ? 'profile has' : 'profiles have'} changed since the plan; apply it with on_drift=proceed, or retry the job to plan anew`;
}
