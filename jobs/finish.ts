import { MAX_CHUNK_FAILURES, MAX_CHUNK_LOSSES, MAX_TIMEOUTS, TASK_PAUSE_MS } from '../src/domain/limits.ts';
import type { LoadContext } from '../src/load/context.ts';
import { failLoad } from '../src/load/end-load.ts';
import { finishLoad } from '../src/load/finish-load.ts';
import type { TaskKind } from '../src/tasks/task-kind.ts';

/** The end of a load whose chunks are all done. Made by the last chunk's transaction. */
export const finishJob: TaskKind<LoadContext> = {
  name: 'finish',
  stops: 'at the deadline',
  tolerance: { transient: Number.POSITIVE_INFINITY, timeout: MAX_TIMEOUTS, defect: MAX_CHUNK_FAILURES },
  maxLosses: MAX_CHUNK_LOSSES,
  pauseMs: () => TASK_PAUSE_MS,
  run: finishLoad,
  fail: (context, { subjectId }, failure) => failLoad(context, subjectId, failure),
};
