/*
 * Schedules: loads and exports that run by the clock. The workers of a service make one run for each due time (`start.ts`). One worker
 * claims the run and reads the source (`run.ts`, `source*.ts`), or requests the export (`run-export.ts`). The run ends when its jobs
 * have ended (`end-run.ts`). Promise: nothing is loaded twice, since the transaction that accepts a load remembers the source's
 * version. See docs/schedules.md.
 */
import type { Capability } from '../../capability.ts';
import { addressesFor } from '../../domain/job.ts';
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
  figures: async () => (await import('./figures.ts')).figures,
  work: async () => (await import('./work.ts')).work,
  routes: async (options) => ({ schedules: (await import('./http.ts')).scheduleRoutes(options) }),
  commands: { schedules: async () => (await import('./cli.ts')).schedules },
};
