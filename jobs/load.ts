import { MAX_TIMEOUTS, TASK_PAUSE_MS } from '../src/base/limits.ts';
import { processChunk } from '../src/load/chunk.ts';
import type { LoadContext } from '../src/load/context.ts';
import { failLoad, startIdleLanes } from '../src/load/end.ts';
import { finishLoad } from '../src/load/finish.ts';
import { beginLoad } from '../src/load/retry.ts';
import type { TaskKind } from '../src/tasks/task-kind.ts';

/**
 * If this many workers in a row die while they run the same task, the task is probably the cause,
 * and the load fails.
 */
export const MAX_CHUNK_LOSSES = 10;
/** Number of errors after which a load fails. Errors known to be transient do not count. */
const MAX_CHUNK_FAILURES = 5;

const loadDefaults = {
  stops: 'at the deadline',
  tolerance: { transient: Number.POSITIVE_INFINITY, timeout: MAX_TIMEOUTS, defect: MAX_CHUNK_FAILURES },
  maxLosses: MAX_CHUNK_LOSSES,
  pauseMs: () => TASK_PAUSE_MS,
  fail: (context, { subjectId }, failure) => failLoad(context, subjectId, failure),
} as const satisfies Partial<TaskKind<LoadContext>>;

/**
 * Prepares a restarted load. If a plan is applied, also checks whether profiles have changed since
 * the plan was made.
 */
export const beginJob: TaskKind<LoadContext> = { ...loadDefaults, name: 'begin', run: beginLoad };

/** Starting a load creates its chunk tasks, and the last chunk creates the `finish` task. */
export const chunkJob: TaskKind<LoadContext> = {
  ...loadDefaults,
  name: 'chunk',
  label: ({ part }) => `chunk ${part}`,
  pauseMs: (failures) => (failures === 0 ? 1_000 : TASK_PAUSE_MS),
  run: processChunk,
  reconcile: startIdleLanes,
};

export const finishJob: TaskKind<LoadContext> = { ...loadDefaults, name: 'finish', run: finishLoad };
