import { RECONCILE_MS } from '../domain/limits.ts';
import { findDueDeliveries, giveUpLost } from '../postgres/ledger/notification-deliveries.ts';
import { type Rounds, startRounds } from '../rounds.ts';
import type { AnnounceContext, SendContext } from './context.ts';
import { ringForDeliveries } from './record-end.ts';

type Context = Pick<SendContext, 'db'> & Pick<AnnounceContext, 'bell' | 'log'>;

/** Deliveries told to the queue at once, and those to one receiver among them. */
const window = 100;
const windowOfOne = 10;

/** Reads the ledger for notifications that are due and rings for them. Harmless to run anywhere, anytime, twice. */
export async function reconcileNotifications(context: Context): Promise<void> {
  const lost = await giveUpLost(context.db);
  if (lost > 0)
    context.log.error({ deliveries: lost }, 'notifications were given up: their workers were lost');
  await ringForDeliveries(context, await findDueDeliveries(context.db, window, windowOfOne), 'again');
}

/** Reconciles at once and then every RECONCILE_MS; errors are logged and the next round tries again. */
export function startNotificationReconciler(context: Context): Rounds {
  return startRounds(RECONCILE_MS, async () => {
    await reconcileNotifications(context).catch((error: unknown) =>
      context.log.warn({ err: error }, 'reconciling notifications failed; next round tries again'),
    );
  });
}
