import { MAX_TIMEOUTS, TASK_PAUSE_MS } from '../src/base/limits.ts';
import { failDeletion, runDeletion } from '../src/deletion/run-deletion.ts';
import type { DeletionContext } from '../src/deletion/seam.ts';
import type { TaskKind } from '../src/tasks/task-kind.ts';

/** Attempts in a row at a deletion whose worker vanished before it got any further, and at one that met an error; then it fails. */
export const MAX_DELETION_LOSSES = 10;
const MAX_DELETION_FAILURES = 5;

/** A deletion whose turn in its lane it is. Works in steps: errors and losses count from the last that got on. */
export const deletionJob: TaskKind<DeletionContext> = {
  name: 'deletion',
  stops: 'at once',
  tolerance: { transient: Number.POSITIVE_INFINITY, timeout: MAX_TIMEOUTS, defect: MAX_DELETION_FAILURES },
  maxLosses: MAX_DELETION_LOSSES,
  pauseMs: () => TASK_PAUSE_MS,
  run: runDeletion,
  fail: (context, { subjectId }, failure) => failDeletion(context, subjectId, failure),
};
