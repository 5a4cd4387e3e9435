/*
 * Schedules: loads and exports by the clock. Workers make one run for each due time (`start.ts`).
 * One worker claims it and reads the source (`run.ts`, `source*.ts`) or requests the export
 * (`run-export.ts`). The run ends when its jobs have ended (`end-run.ts`). Nothing is loaded twice,
 * since the transaction that accepts a load saves the source's version. See docs/schedules.md.
 */
import type { Capability } from '../../capability.ts';
import { addressesFor } from '../../domain/job.ts';
import { deleteRuns, readNotifyOfJob } from './run-store.ts';

export const schedules: Capability = {
  name: 'schedules',
  jobs: {
    // The run reports the ends of its jobs, but waits for a held one.
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
