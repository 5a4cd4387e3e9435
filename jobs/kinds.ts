/*
 * Background jobs: the kinds of tasks, each with all that is particular to it: its tolerance of errors, its
 * pauses, what a final failure means, and its one call into src/. `worker.ts` runs them.
 */
import type { System } from '../src/context.ts';
import { capabilities } from '../src/registry.ts';
import { type ScheduleContext, scheduleSettings } from '../src/sources/schedules/context.ts';
import type { TaskKind } from '../src/tasks/task-kind.ts';
import type { Poller } from '../src/timers.ts';
import { deletionJob } from './deletion.ts';
import { exportJob } from './export.ts';
import { beginJob, chunkJob, finishJob } from './load.ts';
import { appendJob, pruneJob } from './prune.ts';
import { runJob } from './run.ts';

export interface JobContext extends System, ScheduleContext {}

export interface Jobs {
  readonly context: JobContext;
  readonly kinds: readonly TaskKind<JobContext>[];
  /** Starts what watches for work in a worker; stop it first. */
  start(): readonly Poller[];
  close(): void;
}

const core: readonly TaskKind<JobContext>[] = [
  ...[beginJob, chunkJob, finishJob, deletionJob, pruneJob, appendJob, exportJob],
  runJob,
];

const seams = await Promise.all(capabilities.flatMap(({ work }) => (work === undefined ? [] : [work()])));

/** `settings`: of a worker that sees to schedules. */
export function openJobs(
  system: System,
  settings: ScheduleContext['schedules'] = scheduleSettings(system.config, {}),
): Jobs {
  const works = seams.map((seam) => seam.open(system));
  return {
    context: { ...system, schedules: settings },
    kinds: [...core, ...works.flatMap(({ kinds = [] }) => kinds)],
    start: () => works.flatMap((work) => work.start?.() ?? []),
    close: () => {
      for (const work of works) work.close?.();
    },
  };
}
