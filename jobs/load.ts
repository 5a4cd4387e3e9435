import { MAX_TIMEOUTS, TASK_PAUSE_MS } from '../src/base/limits.ts';
import { processChunk } from '../src/load/chunk.ts';
import type { LoadContext } from '../src/load/context.ts';
import { failLoad, startIdleLanes } from '../src/load/end.ts';
import { finishLoad } from '../src/load/finish.ts';
import { beginLoad } from '../src/load/retry.ts';
import type { TaskKind } from '../src/tasks/task-kind.ts';

/** A chunk, or the finish of a load, whose worker vanished this often is taken to be what kills it. */
export const MAX_CHUNK_LOSSES = 10;
/** Attempts a chunk gets at errors that are not known to pass. */
const MAX_CHUNK_FAILURES = 5;

const ofLoad = {
  stops: 'at the deadline',
  tolerance: { transient: Number.POSITIVE_INFINITY, timeout: MAX_TIMEOUTS, defect: MAX_CHUNK_FAILURES },
  maxLosses: MAX_CHUNK_LOSSES,
  pauseMs: () => TASK_PAUSE_MS,
  fail: (context, { subjectId }, failure) => failLoad(context, subjectId, failure),
} as const satisfies Partial<TaskKind<LoadContext>>;

/** Prepares a load for its chunks when it is started again; for a plan that is applied, checks for drift. */
export const beginJob: TaskKind<LoadContext> = { ...ofLoad, name: 'begin', run: beginLoad };

/** Processes one chunk of a running load. Chunks are made when the load is started; the last one makes the load's `finish`. */
export const chunkJob: TaskKind<LoadContext> = {
  ...ofLoad,
  name: 'chunk',
  label: ({ part }) => `chunk ${part}`,
  pauseMs: (failures) => (failures === 0 ? 1_000 : TASK_PAUSE_MS),
  run: processChunk,
  reconcile: startIdleLanes,
};

/** The end of a load whose chunks are all done. Made by the last chunk's transaction. */
export const finishJob: TaskKind<LoadContext> = { ...ofLoad, name: 'finish', run: finishLoad };
