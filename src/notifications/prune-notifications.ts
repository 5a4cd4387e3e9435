import { NOTIFICATION_RETENTION_DAYS } from '../domain/limits.ts';
import type { Database } from '../postgres/database.ts';
import { deleteEvents } from '../postgres/ledger/notification-events.ts';

/** Forgets what was told long ago, and to whom; how many events. */
export async function pruneNotifications(
  { db }: { readonly db: Database },
  { jobDays }: { readonly jobDays: number },
): Promise<{ notifications: number }> {
  return { notifications: await deleteEvents(db, Math.min(NOTIFICATION_RETENTION_DAYS, jobDays)) };
}
