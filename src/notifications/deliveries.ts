import { inputError } from '../domain/errors.ts';
import { NOTIFICATION_RETENTION_DAYS } from '../domain/limits.ts';
import type { DueTask } from '../domain/task.ts';
import { type Database, inTransaction } from '../postgres/database.ts';
import {
  beginAttempt,
  type Delivery,
  insertDeliveries,
  queueDeliveries,
  type Replay,
  reopenDeliveries,
} from '../postgres/stores/deliveries.ts';
import { deleteEvents, type Subscription } from '../postgres/stores/notifications.ts';
import { type Attempt, deliverOnce, type SendContext } from './deliver-notification.ts';
import { writeEvent } from './record-end.ts';
import { requireSubscription } from './subscriptions.ts';

/**
 * Makes deliveries due now, under the ids that they had, with as many attempts as new ones; pass what it returns to
 * `notifyQueue`. Throws `InputError` `not_found`: the environment has no such delivery, or its subscription sends no more.
 */
export async function replayDeliveries(
  db: Database,
  environmentId: number,
  replay: Replay,
): Promise<{ readonly publicIds: readonly string[]; readonly tasks: readonly DueTask[] }> {
  return db.transaction().execute(async (transaction) => {
    const reopened = await reopenDeliveries(transaction, environmentId, replay);
    if (reopened.length === 0 && 'publicId' in replay) {
      const message = 'there is no such delivery, it is being sent now, or its subscription sends no more';
      throw inputError('not_found', message, `delivery: ${replay.publicId}`);
    }
    const deliveryIds = reopened.map(({ deliveryId }) => deliveryId);
    const publicIds = reopened.map(({ publicId }) => publicId);
    return { publicIds, tasks: await queueDeliveries(transaction, deliveryIds) };
  });
}

/**
 * Sends a `ping` to a subscription, once, from this process and whatever else is under way to it. Throws `InputError`:
 * `not_found`, or `invalid_field` if it is disabled.
 */
export async function sendTest(
  context: SendContext,
  environmentId: number,
  subscriptionId: string,
): Promise<Attempt & { readonly publicId: string }> {
  // Without a task: no worker sends it.
  const ping = await inTransaction(context.pool, async ({ db }) => {
    const { channel, target, disabled } = await requireSubscription(db, environmentId, subscriptionId);
    if (disabled !== null)
      throw inputError('invalid_field', `the subscription is disabled: ${disabled.reason}`);
    const eventId = await writeEvent(db, { environmentId, type: 'ping', jobId: null }, {});
    const [deliveryId = 0] = await insertDeliveries(db, eventId, [{ subscriptionId, channel, target }]);
    const attempt = await beginAttempt(db, deliveryId);
    if (attempt === null) throw new Error('a delivery was expected');
    return attempt;
  });
  return { ...(await deliverOnce(context, ping)), publicId: ping.publicId };
}

/** Forgets events that have outlived their retention, and their deliveries; how many events. */
export async function pruneNotifications(
  { db }: { readonly db: Database },
  { jobDays }: { readonly jobDays: number },
): Promise<{ notifications: number }> {
  return { notifications: await deleteEvents(db, Math.min(NOTIFICATION_RETENTION_DAYS, jobDays)) };
}

/* Deliveries and subscriptions as callers see them, in the API and with `--json`. Times are ISO 8601, UTC. */

export function renderDelivery(delivery: Delivery) {
  return {
    delivery_id: delivery.publicId,
    event_id: delivery.eventId,
    event_type: delivery.eventType,
    job_id: delivery.jobId,
    subscription_id: delivery.subscriptionId,
    channel: delivery.channel,
    target: delivery.target,
    state: delivery.state,
    attempts: delivery.attempts,
    next_at: delivery.nextAt?.toISOString() ?? null,
    created_at: delivery.createdAt.toISOString(),
    last_attempt_at: delivery.lastAttemptAt?.toISOString() ?? null,
    last_took_ms: delivery.lastTookMs,
    last_status: delivery.lastStatus,
    last_error: delivery.lastError,
    delivered_at: delivery.deliveredAt?.toISOString() ?? null,
  };
}

export function renderSubscription(subscription: Subscription) {
  return {
    id: subscription.subscriptionId,
    channel: subscription.channel,
    target: subscription.target,
    on: subscription.outcomes,
    types: subscription.kinds,
    created_at: subscription.createdAt.toISOString(),
    disabled_at: subscription.disabled?.at.toISOString() ?? null,
    disabled_reason: subscription.disabled?.reason ?? null,
    previous_secret_until: subscription.previousSecretUntil?.toISOString() ?? null,
  };
}
