import { ConflictError } from '../src/base/errors.ts';
import { type PruneContext, prune } from '../src/jobs/prune.ts';
import { dayMs, periodic } from '../src/tasks/periodic.ts';
import { repeatTask } from '../src/tasks/store.ts';
import type { TaskContext, TaskKind } from '../src/tasks/task-kind.ts';

/** All workers share one task, which is due again a day after its previous run. */
export const pruneJob: TaskKind<PruneContext & TaskContext> = {
  ...periodic,
  name: 'prune',
  stops: 'at the deadline',
  async run(context, claim) {
    const counts = await prune(context);
    if (!(await repeatTask(context.db, claim, dayMs))) throw new ConflictError('another worker prunes');
    context.log.info(counts, 'pruned');
  },
};
