/*
 * The inbox loads files that people drop in a folder. One worker watches it (`watch.ts`) and takes
 * in each stable file (`take-in.ts`). An ended load's file is moved with a receipt (`conclude.ts`).
 * A file is loaded once, even if processes die, or moved to `failed` with the reason.
 */
import type { Capability } from '../../capability.ts';

export const inbox: Capability = {
  name: 'inbox',
  async tend({ db, config }) {
    const { pruneInbox } = await import('./inspect.ts');
    return { inbox_files: await pruneInbox(db, config.jobRetentionDays) };
  },
  figures: async () => (await import('./figures.ts')).figures,
  work: async () => (await import('./work.ts')).work,
  routes: async () => ({ schedules: (await import('./http.ts')).inboxRoutes }),
};
