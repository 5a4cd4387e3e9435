/*
 * Background jobs: the kinds of tasks, each with all that is particular to it: its tolerance of errors, its
 * pauses, what a final failure means, and its one call into src/. `worker.ts` runs them.
 */
import { openSendContext, type System } from '../src/context.ts';
import type { TaskKindName } from '../src/domain/task.ts';
import type { SendContext } from '../src/notifications/deliver-notification.ts';
import { type ScheduleContext, scheduleSettings } from '../src/sources/schedules/context.ts';
import type { TaskKind } from '../src/tasks/task-kind.ts';
import { deletionJob } from './deletion.ts';
import { deliveryJob } from './delivery.ts';
import { exportJob } from './export.ts';
import { beginJob, chunkJob, finishJob } from './load.ts';
import { appendJob, pruneJob } from './prune.ts';
import { runJob } from './run.ts';

export interface JobContext extends System, SendContext, ScheduleContext {}

/** Close its `mail`. `settings`: of a worker that sees to schedules. */
export function openJobContext(
  system: System,
  settings: ScheduleContext['schedules'] = scheduleSettings(system.config, {}),
): JobContext {
  return { ...system, ...openSendContext(system), schedules: settings };
}

const byName: Readonly<Record<TaskKindName, TaskKind<JobContext>>> = {
  begin: beginJob,
  chunk: chunkJob,
  finish: finishJob,
  deletion: deletionJob,
  prune: pruneJob,
  append: appendJob,
  export: exportJob,
  delivery: deliveryJob,
  run: runJob,
};

export const jobKinds: readonly TaskKind<JobContext>[] = Object.values(byName);
