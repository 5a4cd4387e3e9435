import { MAX_RUN_FAILURES, MAX_RUN_LOSSES, MAX_RUNS_AT_ONCE } from '../src/domain/limits.ts';
import type { ScheduleContext } from '../src/sources/schedules/context.ts';
import { doRun, failRun, runPauseMs } from '../src/sources/schedules/run.ts';
import type { TaskKind } from '../src/tasks/task-kind.ts';

/**
 * A run of a schedule: reads its source, or asks for its export. Made for the first run of a schedule of which none is under way;
 * done beside the jobs of the queue in every worker that has a file of schedules, since sources may be slow.
 */
export const runJob: TaskKind<ScheduleContext> = {
  name: 'run',
  label: () => 'the run',
  stops: 'at once',
  beside: MAX_RUNS_AT_ONCE,
  tolerance: { transient: MAX_RUN_FAILURES, timeout: MAX_RUN_FAILURES, defect: MAX_RUN_FAILURES },
  maxLosses: MAX_RUN_LOSSES,
  pauseMs: (failures) => runPauseMs(Math.max(1, failures)),
  run: doRun,
  fail: (context, { subjectId }, failure) => failRun(context, subjectId, failure),
};
