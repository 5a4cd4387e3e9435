/*
 * The inbox: a folder in which people drop files. One worker holds its lock and watches it (`watch.ts`), takes in a file
 * that stays as it is (`take-in.ts`), and moves it with a receipt when its load has ended (`conclude.ts`). Promises: a file is
 * loaded once, even if processes die; a file that cannot be loaded lies in `failed` with the reason.
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
