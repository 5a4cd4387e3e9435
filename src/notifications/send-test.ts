import { uuidv7 } from 'uuidv7';
import { inputError } from '../domain/errors.ts';
import { claimDelivery, type DeliveryClaim } from '../postgres/ledger/notification-deliveries.ts';
import { insertEvent } from '../postgres/ledger/notification-events.ts';
import { inTransaction } from '../postgres/transaction.ts';
import type { SendContext } from './context.ts';
import { type Attempt, attemptDelivery } from './deliver-notification.ts';
import { renderEvent } from './render-event.ts';
import { requireSubscription } from './subscriptions.ts';

/**
 * Sends a `ping` to a subscription, once, and says how that went. Throws `InputError`: `not_found`, or `invalid_field`
 * if it is disabled.
 */
export async function sendTest(
  context: SendContext,
  environmentId: number,
  subscriptionId: number,
): Promise<Attempt & { readonly deliveryId: number }> {
  const claim = await prepare(context, environmentId, subscriptionId);
  const attempt = await attemptDelivery(context, claim, new AbortController().signal);
  if (attempt === null) throw new Error('a test cannot be interrupted');
  return { ...attempt, deliveryId: claim.deliveryId };
}

/** Claimed in the transaction that makes it: no worker sees it before. */
async function prepare(
  { pool, policy }: SendContext,
  environmentId: number,
  subscriptionId: number,
): Promise<DeliveryClaim> {
  return inTransaction(pool, async ({ db }) => {
    const { channel, target, disabled } = await requireSubscription(db, environmentId, subscriptionId);
    if (disabled !== null)
      throw inputError('invalid_field', `the subscription is disabled: ${disabled.reason}`);
    const eventId = uuidv7();
    const event = { eventId, environmentId, type: 'ping', jobId: null } as const;
    const body = await renderEvent(db, { ...event, data: {} });
    const [due] = await insertEvent(db, { ...event, body }, [{ subscriptionId, channel, target }], 1);
    const claim = due === undefined ? null : await claimDelivery(db, due.deliveryId, policy.attempts);
    if (claim !== null) return claim;
    throw inputError('unavailable', 'as many notifications as may be are under way to it; try again');
  });
}
