/*
 * Schedules: loads and exports by the clock. Workers make a run for each due time (`start.ts`). One
 * reads the source (`run.ts`, `source*.ts`) or requests the export (`run-export.ts`). The run ends
 * after its jobs (`end-run.ts`). A version of a source is saved with its load, so it loads once.
 */
import type { Capability } from '../../capability.ts';
import { addressesFor } from '../../domain/job.ts';
import { deleteRuns, readNotifyOfJob } from './run-store.ts';

export const schedules: Capability = {
  name: 'schedules',
  jobs: {
    // The run reports the ends of its jobs. A held job has not ended, so it reports itself.
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
