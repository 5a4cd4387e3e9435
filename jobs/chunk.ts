import { MAX_CHUNK_FAILURES, MAX_CHUNK_LOSSES, MAX_TIMEOUTS, TASK_PAUSE_MS } from '../src/domain/limits.ts';
import type { LoadContext } from '../src/load/context.ts';
import { failLoad, startIdleLanes } from '../src/load/end-load.ts';
import { processChunk } from '../src/load/process-chunk.ts';
import type { TaskKind } from '../src/tasks/task-kind.ts';

/** Processes one chunk of a running load. Chunks are made when the load is started; the last one makes the load's `finish`. */
export const chunkJob: TaskKind<LoadContext> = {
  name: 'chunk',
  label: ({ part }) => `chunk ${part}`,
  stops: 'at the deadline',
  tolerance: { transient: Number.POSITIVE_INFINITY, timeout: MAX_TIMEOUTS, defect: MAX_CHUNK_FAILURES },
  maxLosses: MAX_CHUNK_LOSSES,
  pauseMs: (failures) => (failures === 0 ? 1_000 : TASK_PAUSE_MS),
  run: processChunk,
  fail: (context, { subjectId }, failure) => failLoad(context, subjectId, failure),
  reconcile: startIdleLanes,
};
