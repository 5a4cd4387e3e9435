import type { JobHandlers } from '../src/queue/contract.ts';
import type { RunningSchedules } from '../src/sources/schedules/start-schedules.ts';

/** A worker without schedules leaves them to the others, whose rounds find what is due. */
export function ringSchedulesJob(schedules: RunningSchedules | null): JobHandlers['ring-schedules'] {
  return async () => {
    await schedules?.wake();
  };
}
