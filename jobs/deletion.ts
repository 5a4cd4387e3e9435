import { MAX_TIMEOUTS, TASK_PAUSE_MS } from '../src/base/limits.ts';
import { failDeletion, runDeletion } from '../src/deletion/run-deletion.ts';
import type { DeletionContext } from '../src/deletion/seam.ts';
import type { TaskKind } from '../src/tasks/task-kind.ts';

/** Consecutive lost workers after which a deletion fails. Progress resets the count. */
export const MAX_DELETION_LOSSES = 10;
/** Consecutive errors after which a deletion fails. Progress resets the count. */
const MAX_DELETION_FAILURES = 5;

export const deletionJob: TaskKind<DeletionContext> = {
  name: 'deletion',
  stops: 'at once',
  tolerance: { transient: Number.POSITIVE_INFINITY, timeout: MAX_TIMEOUTS, defect: MAX_DELETION_FAILURES },
  maxLosses: MAX_DELETION_LOSSES,
  pauseMs: () => TASK_PAUSE_MS,
  run: runDeletion,
  fail: (context, { subjectId }, failure) => failDeletion(context, subjectId, failure),
};
