/*
 * Defines the kinds of background tasks. Each kind states the errors it tolerates, its pauses, the
 * function that handles a final failure, and the function in src/ that it calls. `worker.ts` runs
 * the tasks.
 */

import { MAX_TIMEOUTS, TASK_PAUSE_MS } from '../src/base/limits.ts';
import type { Poller } from '../src/base/timers.ts';
import type { System } from '../src/context.ts';
import { failDeletion, runDeletion } from '../src/deletion/run-deletion.ts';
import type { DeletionContext } from '../src/deletion/seam.ts';
import type { TaskKindName } from '../src/domain/task.ts';
import type { ExportContext } from '../src/export/context.ts';
import { failExport, runExport } from '../src/export/run-export.ts';
import { type PruneContext, prune, removeLeftovers } from '../src/jobs/prune.ts';
import type { WorkerProcess, WorkSeam } from '../src/jobs/seam.ts';
import { capabilities } from '../src/registry.ts';
import { repeatTask } from '../src/tasks/store.ts';
import { dayMs, periodic, type TaskContext, type TaskKind } from '../src/tasks/task-kind.ts';
import { beginJob, chunkJob, finishJob } from './load.ts';

/**
 * Removes expired data. All workers share one task, which is due again a day after its previous
 * run.
 */
export const pruneJob: TaskKind<PruneContext & TaskContext> = {
  ...periodic,
  name: 'prune',
  stops: 'at the deadline',
  async run(context, claim) {
    const counts = await prune(context);
    await repeatTask(context.db, claim, dayMs);
    context.log.info(counts, 'pruned');
  },
};

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

/**
 * If this many workers in a row die while they run the same deletion, the deletion fails. Progress
 * resets the count.
 */
export const MAX_DELETION_LOSSES = 10;
/** A deletion fails after this many consecutive errors. Progress resets the count. */
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

export interface Jobs {
  readonly kinds: readonly TaskKind<System>[];
  /** Starts the capabilities' pollers, which the caller stops before `close`. */
  start(wake: (kind: TaskKindName) => void): readonly Poller[];
  close(): void;
}

const coreKinds = [beginJob, chunkJob, finishJob, deletionJob, pruneJob, exportJob];

const capabilityWork = await Promise.all(
  capabilities.flatMap(({ work }) => (work === undefined ? [] : [work()])),
);

const commandProcess: WorkerProcess = { variables: {}, isOfService: false };

/** Fault tests use `seams` to replace the work of the capabilities. */
export function openJobs(
  system: System,
  worker: WorkerProcess = commandProcess,
  seams: readonly WorkSeam[] = capabilityWork,
): Jobs {
  const works = seams.map((seam) => seam.open(system, worker));
  return {
    kinds: [...coreKinds, ...works.flatMap(({ kinds = [] }) => kinds)],
    start: (wake) => works.flatMap((work) => work.start?.(wake) ?? []),
    close() {
      for (const work of works) work.close?.();
    },
  };
}
