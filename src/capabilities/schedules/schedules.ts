/*
 * Schedules: loads and exports at regular times. Workers create a run for each due time
 * (`start.ts`). A run loads a source (`run.ts`) or starts an export (`run-export.ts`), and ends
 * after its jobs (`end-run.ts`). Each version of a source is loaded only once.
 */
import type { Capability } from '../../capability.ts';
import { addressesFor } from '../../domain/job.ts';
import { readNotifyOfJob } from './run-item-store.ts';
import { deleteRuns } from './run-store.ts';

export const schedules: Capability = {
  name: 'schedules',
  jobs: {
    // The report of a run covers its ended jobs. A held job has not ended.
    async addresses(db, { type, jobId }) {
      if (type !== 'load.held' || jobId === null) return [];
      return addressesFor(await readNotifyOfJob(db, jobId), 'held');
    },
  },
  maintain: async ({ db, config }) => ({ schedule_runs: await deleteRuns(db, config.jobRetentionDays) }),
  figures: async () => (await import('./figures.ts')).figures,
  work: async () => (await import('./work.ts')).work,
  routes: async (optionTable, exportOptions) => ({
    schedules: (await import('./http.ts')).scheduleRoutes({ optionTable, exportOptions }),
  }),
  declares: async () => (await import('./file.ts')).schedulesSection,
  commands: { schedules: async () => (await import('./cli.ts')).schedules },
};
