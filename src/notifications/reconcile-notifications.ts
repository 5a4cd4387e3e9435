import { RECONCILE_MS } from '../domain/limits.ts';
import { giveUpLost } from '../postgres/stores/deliveries.ts';
import { type Poller, startPoller } from '../tasks/poller.ts';
import type { SendContext } from './deliver-notification.ts';
import type { Sender } from './start-sender.ts';

/**
 * Gives up what was lost for good, and wakes the sender: something may be due that the queue did not tell of. Harmless to run
 * anywhere, anytime, twice.
 */
export async function reconcileNotifications(
  { db, log }: Pick<SendContext, 'db' | 'log'>,
  sender: Pick<Sender, 'wake'>,
): Promise<void> {
  const lost = await giveUpLost(db);
  if (lost > 0) log.error({ deliveries: lost }, 'notifications were given up: their workers were lost');
  sender.wake();
}

/** Reconciles at once and then every RECONCILE_MS; errors are logged and the next round tries again. */
export function startNotificationReconciler(
  context: Pick<SendContext, 'db' | 'log'>,
  sender: Pick<Sender, 'wake'>,
): Poller {
  return startPoller(RECONCILE_MS, async () => {
    await reconcileNotifications(context, sender).catch((error: unknown) =>
      context.log.warn({ err: error }, 'reconciling notifications failed; next round tries again'),
    );
  });
}
