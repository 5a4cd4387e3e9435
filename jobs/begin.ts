import { MAX_CHUNK_FAILURES, MAX_CHUNK_LOSSES, MAX_TIMEOUTS, TASK_PAUSE_MS } from '../src/domain/limits.ts';
import { beginLoad } from '../src/load/begin-load.ts';
import type { LoadContext } from '../src/load/context.ts';
import { failLoad } from '../src/load/end-load.ts';
import type { TaskKind } from '../src/tasks/task-kind.ts';

/** Prepares a load for its chunks when it is started again; for a plan that is applied, checks for drift. */
export const beginJob: TaskKind<LoadContext> = {
  name: 'begin',
  stops: 'at the deadline',
  tolerance: { transient: Number.POSITIVE_INFINITY, timeout: MAX_TIMEOUTS, defect: MAX_CHUNK_FAILURES },
  maxLosses: MAX_CHUNK_LOSSES,
  pauseMs: () => TASK_PAUSE_MS,
  run: beginLoad,
  fail: (context, { subjectId }, failure) => failLoad(context, subjectId, failure),
};
