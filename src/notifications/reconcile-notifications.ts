import { RECONCILE_MS } from '../domain/limits.ts';
import { findDueDeliveries, giveUpLost } from '../postgres/ledger/notification-deliveries.ts';
import { type Rounds, startRounds } from '../rounds.ts';
import type { SendContext } from './context.ts';
import type { Sender } from './start-sender.ts';

/** Deliveries offered at once, and those to one receiver among them. */
const window = 100;
const windowOfOne = 10;

/**
 * Reads the ledger for notifications that are due, the queue having told of them or not, and offers them to a sender.
 * Harmless to run anywhere, anytime, twice.
 */
export async function reconcileNotifications(
  { db, log }: Pick<SendContext, 'db' | 'log'>,
  sender: Pick<Sender, 'offer'>,
): Promise<void> {
  const lost = await giveUpLost(db);
  if (lost > 0) log.error({ deliveries: lost }, 'notifications were given up: their workers were lost');
  for (const { deliveryId } of await findDueDeliveries(db, window, windowOfOne)) sender.offer(deliveryId);
}

/** Reconciles at once and then every RECONCILE_MS; errors are logged and the next round tries again. */
export function startNotificationReconciler(
  context: Pick<SendContext, 'db' | 'log'>,
  sender: Pick<Sender, 'offer'>,
): Rounds {
  return startRounds(RECONCILE_MS, async () => {
    await reconcileNotifications(context, sender).catch((error: unknown) =>
      context.log.warn({ err: error }, 'reconciling notifications failed; next round tries again'),
    );
  });
}
