import type { Subscription } from '../../postgres/stores/notifications.ts';

export function renderSubscription(subscription: Subscription) {
  const { subscriptionId, channel, target, outcomes, kinds, createdAt, disabled } = subscription;
  return {
    id: subscriptionId,
    channel,
    target,
    on: outcomes,
    types: kinds,
    created_at: createdAt.toISOString(),
    disabled_at: disabled?.at.toISOString() ?? null,
    disabled_reason: disabled?.reason ?? null,
    previous_secret_until: subscription.previousSecretUntil?.toISOString() ?? null,
  };
}
