import { inputError } from '../domain/errors.ts';
import { NOTIFICATION_RETENTION_DAYS } from '../domain/limits.ts';
import type { Database } from '../postgres/database.ts';
import {
  claimDelivery,
  type DeliveryClaim,
  type DueDelivery,
  type Replay,
  requeueDeliveries,
} from '../postgres/stores/deliveries.ts';
import { deleteEvents } from '../postgres/stores/notifications.ts';
import { inTransaction } from '../postgres/transaction.ts';
import { type Attempt, attemptDelivery, type SendContext } from './deliver-notification.ts';
import { attemptsPerDelivery } from './delivery-policy.ts';
import { writeEvent } from './record-end.ts';
import { requireSubscription } from './subscriptions.ts';

/**
 * Makes deliveries due now, under the ids that they had; pass what it returns to `ringForDeliveries`. Throws `InputError`
 * `not_found`: the environment has no such delivery, or its subscription sends no more.
 */
export async function replayDeliveries(
  db: Database,
  environmentId: number,
  replay: Replay,
): Promise<DueDelivery[]> {
  const due = await requeueDeliveries(db, environmentId, replay, attemptsPerDelivery);
  if (due.length === 0 && 'deliveryId' in replay) {
    const message = 'there is no such delivery, it is being sent now, or its subscription sends no more';
    throw inputError('not_found', message, `delivery: ${replay.deliveryId}`);
  }
  return due;
}

/**
 * Sends a `ping` to a subscription, once, from this process. Throws `InputError`: `not_found`, or `invalid_field` if it is
 * disabled.
 */
export async function sendTest(
  context: SendContext,
  environmentId: number,
  subscriptionId: number,
): Promise<Attempt & { readonly deliveryId: number }> {
  const claim = await preparePing(context, environmentId, subscriptionId);
  const attempt = await attemptDelivery(context, claim, new AbortController().signal);
  if (attempt === null) throw new Error('a test cannot be interrupted');
  return { ...attempt, deliveryId: claim.deliveryId };
}

/** Claimed in the transaction that makes it: no worker sees it before. */
async function preparePing(
  { pool, policy }: SendContext,
  environmentId: number,
  subscriptionId: number,
): Promise<DeliveryClaim> {
  return inTransaction(pool, async ({ db }) => {
    const { channel, target, disabled } = await requireSubscription(db, environmentId, subscriptionId);
    if (disabled !== null)
      throw inputError('invalid_field', `the subscription is disabled: ${disabled.reason}`);
    const ping = { environmentId, type: 'ping', jobId: null } as const;
    const [due] = await writeEvent(db, ping, {}, [{ subscriptionId, channel, target }], 1);
    const claim = due === undefined ? null : await claimDelivery(db, due.deliveryId, policy.attempts);
    if (claim !== null) return claim;
    throw inputError('unavailable', 'as many notifications as may be are under way to it; try again');
  });
}

/** Forgets events that have outlived their retention, and their deliveries; how many events. */
export async function pruneNotifications(
  { db }: { readonly db: Database },
  { jobDays }: { readonly jobDays: number },
): Promise<{ notifications: number }> {
  return { notifications: await deleteEvents(db, Math.min(NOTIFICATION_RETENTION_DAYS, jobDays)) };
}
