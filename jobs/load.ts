import { MAX_TIMEOUTS, TASK_PAUSE_MS } from '../src/base/limits.ts';
import { processChunk } from '../src/load/chunk.ts';
import type { LoadContext } from '../src/load/context.ts';
import { failLoad, startIdleLanes } from '../src/load/end.ts';
import { finishLoad } from '../src/load/finish.ts';
import { beginLoad } from '../src/load/retry.ts';
import type { TaskKind } from '../src/tasks/task-kind.ts';

/** Lost workers after which a chunk, or the finish of a load, counts as their cause. */
export const MAX_CHUNK_LOSSES = 10;
/** Attempts of a chunk at errors that are not known to pass. */
const MAX_CHUNK_FAILURES = 5;

const loadDefaults = {
  stops: 'at the deadline',
  tolerance: { transient: Number.POSITIVE_INFINITY, timeout: MAX_TIMEOUTS, defect: MAX_CHUNK_FAILURES },
  maxLosses: MAX_CHUNK_LOSSES,
  pauseMs: () => TASK_PAUSE_MS,
  fail: (context, { subjectId }, failure) => failLoad(context, subjectId, failure),
} as const satisfies Partial<TaskKind<LoadContext>>;

/** Prepares a load for its chunks when it starts again. Checks an applied plan for drift. */
export const beginJob: TaskKind<LoadContext> = { ...loadDefaults, name: 'begin', run: beginLoad };

/**
 * Processes one chunk of a running load. The start of a load makes its chunks, and the last chunk
 * makes its `finish`.
 */
export const chunkJob: TaskKind<LoadContext> = {
  ...loadDefaults,
  name: 'chunk',
  label: ({ part }) => `chunk ${part}`,
  pauseMs: (failures) => (failures === 0 ? 1_000 : TASK_PAUSE_MS),
  run: processChunk,
  reconcile: startIdleLanes,
};

/** Ends a load whose chunks are all done. The last chunk's transaction makes this task. */
export const finishJob: TaskKind<LoadContext> = { ...loadDefaults, name: 'finish', run: finishLoad };
