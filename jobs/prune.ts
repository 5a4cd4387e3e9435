import { type PruneContext, prune } from '../src/background-jobs/prune.ts';
import { ConflictError } from '../src/domain/errors.ts';
import { repeatTask } from '../src/postgres/stores/tasks.ts';
import type { TaskContext, TaskKind } from '../src/tasks/task-kind.ts';

const minuteMs = 60 * 1000;
const dayMs = 24 * 60 * minuteMs;
/** Nothing is given up: what could not be pruned is pruned later. */
const endless = 1_000_000;

/** The daily pruning: one task for all workers, due again a day after it is done. */
export const pruneJob: TaskKind<PruneContext & TaskContext> = {
  name: 'prune',
  stops: 'at the deadline',
  tolerance: { transient: endless, timeout: endless, defect: endless },
  maxLosses: endless,
  pauseMs: (failures) => Math.min(minuteMs * 2 ** failures, dayMs),
  async run(context, claim) {
    const pruned = await prune(context);
    if (!(await repeatTask(context.db, claim, dayMs))) throw new ConflictError('another worker prunes');
    context.log.info(pruned, 'pruned');
  },
  fail: async () => undefined,
};
