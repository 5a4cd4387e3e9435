import type { Delivery } from '../postgres/stores/deliveries.ts';
import type { Subscription } from '../postgres/stores/notifications.ts';

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
