import type { WorkSeam } from '../../jobs/work-seam.ts';
import { startInbox } from './watch.ts';

export const work: WorkSeam = {
  open: (system) => ({
    start: () => (system.config.inboxDir === null ? null : startInbox(system, system.config.inboxDir)),
  }),
};
