import { TASK_PAUSE_MS } from '../src/base/limits.ts';
import type { ExportContext } from '../src/export/context.ts';
import { failExport, runExport } from '../src/export/run-export.ts';
import { removeLeftovers } from '../src/jobs/prune.ts';
import type { TaskKind } from '../src/tasks/task-kind.ts';

export const MAX_EXPORT_LOSSES = 5;
export const MAX_EXPORT_FAILURES = 5;

/** Every attempt starts from the beginning, so even transient errors count as failures. */
export const exportJob: TaskKind<ExportContext> = {
  name: 'export',
  stops: 'at once',
  tolerance: { transient: MAX_EXPORT_FAILURES, timeout: MAX_EXPORT_FAILURES, defect: MAX_EXPORT_FAILURES },
  maxLosses: MAX_EXPORT_LOSSES,
  pauseMs: () => TASK_PAUSE_MS,
  run: runExport,
  fail: (context, { subjectId }, failure) => failExport(context, subjectId, failure),
  reconcile: removeLeftovers,
};
