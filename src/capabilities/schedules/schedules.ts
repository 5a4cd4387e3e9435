/*
 * Schedules: loads and exports that run by the clock. Every worker of a service makes a row of each due time, once (`start.ts`); one
 * claims it and reads the source (`run.ts`; `source.ts` and those of its kind), or requests the export (`run-export.ts`); when its
 * jobs have ended, the run ends (`end-run.ts`). Promise: nothing is loaded twice, since what was taken is remembered in the
 * transaction that accepts the load. See docs/schedules.md.
 */
import type { Capability } from '../../capability.ts';
import { addressesFor } from '../../domain/job-event.ts';
import { deleteRuns, readNotifyOfJob } from './run-store.ts';

export const schedules: Capability = {
  name: 'schedules',
  jobs: {
    // The run tells of the ends of its jobs; one that is held it waits for.
    async addresses(db, { type, jobId }) {
      if (type !== 'load.held' || jobId === null) return [];
      return addressesFor(await readNotifyOfJob(db, jobId), 'held');
    },
  },
  tend: async ({ db, config }) => ({ schedule_runs: await deleteRuns(db, config.jobRetentionDays) }),
  work: async () => (await import('./work.ts')).work,
  routes: async () => ({ schedules: (await import('./http.ts')).scheduleRoutes }),
  commands: { schedules: async () => (await import('./cli.ts')).schedules },
};
