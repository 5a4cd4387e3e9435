import { ConflictError } from '../src/base/errors.ts';
import { type PruneContext, prune } from '../src/jobs/prune.ts';
import { appendEvents } from '../src/retention/append-events.ts';
import type { RetentionContext } from '../src/retention/archive-events.ts';
import { endTask, repeatTask } from '../src/tasks/store.ts';
import type { TaskContext, TaskKind } from '../src/tasks/task-kind.ts';

const minuteMs = 60 * 1000;
const dayMs = 24 * 60 * minuteMs;

/** Nothing is given up: what could not be pruned is pruned later. */
const endless = 1_000_000;

const periodic = {
  tolerance: { transient: endless, timeout: endless, defect: endless },
  maxLosses: endless,
  pauseMs: (failures: number) => Math.min(minuteMs * 2 ** failures, dayMs),
  fail: async () => undefined,
};

/** The daily pruning: one task for all workers, due again a day after it is done. */
export const pruneJob: TaskKind<PruneContext & TaskContext> = {
  ...periodic,
  name: 'prune',
  stops: 'at the deadline',
  async run(context, claim) {
    const pruned = await prune(context);
    if (!(await repeatTask(context.db, claim, dayMs))) throw new ConflictError('another worker prunes');
    context.log.info(pruned, 'pruned');
  },
};

/** Appends new events to the lake: one task for all workers, due again LAKE_EVERY after it is done, as long as that is set. */
export const appendJob: TaskKind<RetentionContext & TaskContext> = {
  ...periodic,
  name: 'append',
  stops: 'at once',
  async run(context, claim, signal) {
    const { lakeEveryMs } = context.config;
    await appendEvents(context, signal);
    const isOwn =
      lakeEveryMs === null ? endTask(context.db, claim) : repeatTask(context.db, claim, lakeEveryMs);
    if (!(await isOwn)) throw new ConflictError('another worker appends to the lake');
  },
};
