import { type RunnerKind, type Work, type WorkSeam, withContext } from '../../jobs/seam.ts';
import { type ScheduleContext, scheduleSettings } from './context.ts';
import { doRun, failRun, MAX_RUN_FAILURES, runPauseMs } from './run.ts';
import { startSchedules } from './start.ts';

const MAX_RUNS_AT_ONCE = 2;
const MAX_RUN_LOSSES = 5;

/**
 * A schedule has at most one task of this kind. The task bypasses the job queue, because sources
 * may be slow.
 */
export const runJob: RunnerKind<ScheduleContext> = {
  name: 'run',
  label: () => 'the run',
  stops: 'at once',
  maxOutsideQueue: MAX_RUNS_AT_ONCE,
  isOfService: true,
  tolerance: { transient: MAX_RUN_FAILURES, timeout: MAX_RUN_FAILURES, defect: MAX_RUN_FAILURES },
  maxLosses: MAX_RUN_LOSSES,
  pauseMs: runPauseMs,
  run: doRun,
  fail: (context, { subjectId }, failure) => failRun(context, subjectId, failure),
};

export function openWork(context: ScheduleContext, isOfService: boolean): Work {
  return {
    kinds: [withContext(runJob, context)],
    start: (wake) => (isOfService ? startSchedules(context, () => wake('run')) : null),
  };
}

export const work: WorkSeam = {
  open: (system, { variables, isOfService }) =>
    openWork({ ...system, schedules: scheduleSettings(system.config, variables) }, isOfService),
};
