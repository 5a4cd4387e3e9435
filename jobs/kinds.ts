/*
 * Kinds of background tasks: the errors that each tolerates, its pauses, what follows a final
 * failure, and the function in src/ that it calls. `worker.ts` runs the tasks.
 */

import type { Poller } from '../src/base/timers.ts';
import type { System } from '../src/context.ts';
import type { TaskKindName } from '../src/domain/task.ts';
import type { WorkerProcess, WorkSeam } from '../src/jobs/work-seam.ts';
import { capabilities } from '../src/registry.ts';
import type { TaskKind } from '../src/tasks/task-kind.ts';
import { deletionJob } from './deletion.ts';
import { exportJob } from './export.ts';
import { beginJob, chunkJob, finishJob } from './load.ts';
import { pruneJob } from './prune.ts';

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

/** Fault tests replace the work of the capabilities by `seams`. */
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
