/*
 * The inbox loads files that people drop into a folder. One worker watches the folder (`watch.ts`).
 * Each file is loaded exactly once (`take-in.ts`), or is moved to `failed` with the reason. When a
 * load has ended, its file is moved and gets a receipt (`conclude.ts`).
 */
import type { Capability } from '../../capability.ts';

export const inbox: Capability = {
  name: 'inbox',
  async maintain({ db, config }) {
    const { pruneInbox } = await import('./inspect.ts');
    return { inbox_files: await pruneInbox(db, config.jobRetentionDays) };
  },
  figures: async () => (await import('./figures.ts')).figures,
  work: async () => (await import('./watch.ts')).work,
  routes: async () => ({ schedules: (await import('./http.ts')).inboxRoutes }),
};
