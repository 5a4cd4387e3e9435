import { Interrupted } from '../domain/errors.ts';
import {
  type AttemptReport,
  claimDelivery,
  type DeliveryClaim,
  markDead,
  markDelivered,
  postponeDelivery,
  releaseDelivery,
} from '../postgres/ledger/notification-deliveries.ts';
import type { SendContext } from './context.ts';
import { pauseAfter } from './delivery-policy.ts';
import { sendEmail } from './send-email.ts';
import { sendWebhook } from './send-webhook.ts';
import { disableSubscription } from './subscriptions.ts';

/** What came of one attempt. */
export interface Attempt extends AttemptReport {
  readonly outcome: 'delivered' | 'failed' | 'refused' | 'gone';
  readonly retryAfterMs: number | null;
}

/** Tells one receiver of one event, if that is due. May be called twice or late: then there is nothing to do. */
export async function deliverNotification(
  context: SendContext,
  deliveryId: number,
  stopping: AbortSignal,
): Promise<void> {
  if (stopping.aborted) return;
  const claim = await claimDelivery(context.db, deliveryId, context.policy.attempts);
  if (claim !== null) await attemptDelivery(context, claim, stopping);
}

/** Sends what was claimed, and notes how that went. Null: the worker stops, and it was given back. */
export async function attemptDelivery(
  context: SendContext,
  claim: DeliveryClaim,
  stopping: AbortSignal,
): Promise<Attempt | null> {
  try {
    const attempt = await send(context, claim, stopping);
    await note(context, claim, attempt);
    return attempt;
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error;
    await releaseDelivery(context.db, claim);
    return null;
  }
}

async function send(context: SendContext, claim: DeliveryClaim, stopping: AbortSignal): Promise<Attempt> {
  const began = performance.now();
  const took = (): number => Math.round(performance.now() - began);
  if (claim.closed !== null) {
    return { outcome: 'refused', status: null, error: claim.closed, retryAfterMs: null, tookMs: 0 };
  }
  if (claim.channel === 'email') {
    const { error, refused } = await sendEmail(context.post, claim.event.body, claim.target);
    const outcome = error === null ? 'delivered' : refused ? 'refused' : 'failed';
    return { outcome, status: null, error, retryAfterMs: null, tookMs: took() };
  }
  const { id, body } = claim.event;
  const webhook = { url: claim.target, id, body, secrets: claim.secrets };
  const { status, error, retryAfterMs } = await sendWebhook(webhook, context.policy, stopping);
  const outcome = error === null ? 'delivered' : status === 410 ? 'gone' : 'failed';
  return { outcome, status, error, retryAfterMs, tookMs: took() };
}

async function note(context: SendContext, claim: DeliveryClaim, attempt: Attempt): Promise<void> {
  const { db, log, policy } = context;
  const fields = {
    delivery_id: claim.deliveryId,
    event_id: claim.event.id,
    event_type: claim.event.type,
    attempt: claim.attempt,
    // What a receiver says often repeats its address, which is not for the log: the ledger has it.
    ...(attempt.status === null ? { reason: attempt.error } : { status: attempt.status }),
  };
  if (attempt.outcome === 'delivered') {
    await markDelivered(db, claim, attempt);
    log.info(fields, 'notification delivered');
    return;
  }
  if (attempt.outcome === 'failed' && claim.attemptsLeft > 0) {
    await postponeDelivery(db, claim, attempt, pauseAfter(policy, claim.turn, attempt.retryAfterMs));
    log.warn(fields, 'a notification could not be delivered; it will be tried again');
    return;
  }
  await markDead(db, claim, attempt);
  log.error(fields, 'a notification was given up');
  if (attempt.outcome !== 'gone' || claim.subscriptionId === null) return;
  await disableSubscription(db, claim.subscriptionId, 'its receiver answered 410 Gone');
  log.warn({ subscription_id: claim.subscriptionId }, 'a subscription was disabled: its receiver is gone');
}
