import { MAX_TIMEOUTS, TASK_PAUSE_MS } from '../src/base/limits.ts';
import { failDeletion, runDeletion } from '../src/deletion/run-deletion.ts';
import type { DeletionContext } from '../src/deletion/seam.ts';
import type { TaskKind } from '../src/tasks/task-kind.ts';

/**
 * Lost workers in a row, and errors in a row, after which a deletion fails. Progress resets both
 * counts.
 */
export const MAX_DELETION_LOSSES = 10;
const MAX_DELETION_FAILURES = 5;

/**
 * Runs the deletion whose turn it is in its lane. Works in steps: errors and losses count since the
 * last progress.
 */
export const deletionJob: TaskKind<DeletionContext> = {
  name: 'deletion',
  stops: 'at once',
  tolerance: { transient: Number.POSITIVE_INFINITY, timeout: MAX_TIMEOUTS, defect: MAX_DELETION_FAILURES },
  maxLosses: MAX_DELETION_LOSSES,
  pauseMs: () => TASK_PAUSE_MS,
  run: runDeletion,
  fail: (context, { subjectId }, failure) => failDeletion(context, subjectId, failure),
};
