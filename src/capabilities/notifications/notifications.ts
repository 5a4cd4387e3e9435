/*
 * Notifications: webhooks and mail about ended jobs. `record.ts` writes an event and its deliveries
 * in the transaction that ends the job. `deliver.ts` sends them. Each receiver gets each event at
 * least once, or the delivery is listed as dead.
 */
import type { Capability } from '../../capability.ts';
import { recordEvent } from './record.ts';
import { deleteEvents } from './subscription-store.ts';

/**
 * Number of days for which events are kept. If JOB_RETENTION_DAYS is smaller, it applies instead.
 */
const NOTIFICATION_RETENTION_DAYS = 30;

export const notifications: Capability = {
  name: 'notifications',
  jobs: { ended: recordEvent },
  async maintain({ db, config }) {
    const days = Math.min(NOTIFICATION_RETENTION_DAYS, config.jobRetentionDays);
    return { notifications: await deleteEvents(db, days) };
  },
  figures: async () => (await import('./figures.ts')).figures,
  work: async () => (await import('./work.ts')).work,
  routes: async () => ({ notifications: (await import('./http.ts')).notificationRoutes }),
  declares: async () => (await import('./section.ts')).subscriptionsSection,
  commands: { notifications: async () => (await import('./cli.ts')).notifications },
};
