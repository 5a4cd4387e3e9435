/*
 * The inbox loads files that people drop in a folder. One worker holds its lock and watches it
 * (`watch.ts`), takes in each stable file (`take-in.ts`), and moves it with a receipt when its load
 * has ended (`conclude.ts`). A file is loaded once, even if processes die. A file that cannot be
 * loaded is in `failed` with the reason.
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
