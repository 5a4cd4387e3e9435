import type pg from 'pg';
import type { Logger } from 'pino';
import { Interrupted } from '../domain/errors.ts';
import { isMailAddress } from '../domain/mail-address.ts';
import type { Database } from '../postgres/database.ts';
import {
  type AttemptReport,
  claimDelivery,
  type DeliveryClaim,
  markDead,
  markDelivered,
  postponeDelivery,
  releaseDelivery,
} from '../postgres/stores/deliveries.ts';
import { disableSubscription } from '../postgres/stores/notifications.ts';
import { composeMail, type LinkedFiles } from './compose-mail.ts';
import { type DeliveryPolicy, pauseAfter } from './delivery-policy.ts';
import { MailRefused, type MailTransport } from './mail-transport.ts';
import type { EventBody } from './record-end.ts';
import { sendWebhook, shortLine } from './send-webhook.ts';

/** What sending works with. */
export interface SendContext {
  readonly pool: pg.Pool;
  readonly db: Database;
  readonly log: Logger;
  readonly mail: MailTransport;
  readonly policy: DeliveryPolicy;
  /** The files of an export, with links signed now; none unless it is completed and they are kept still. */
  readonly linkFiles: (environmentId: number, jobId: string) => Promise<LinkedFiles>;
}

/** What came of one attempt. */
export interface Attempt extends AttemptReport {
  readonly outcome: 'delivered' | 'failed' | 'refused' | 'gone';
  readonly retryAfterMs: number | null;
}

/** Sends one event to one receiver, if that is due. May be called twice or late: then there is nothing to do. */
export async function deliverNotification(
  context: SendContext,
  deliveryId: number,
  stopping: AbortSignal,
): Promise<void> {
  if (stopping.aborted) return;
  const claim = await claimDelivery(context.db, deliveryId, context.policy.attempts);
  if (claim !== null) await attemptDelivery(context, claim, stopping);
}

/** Sends what was claimed, and records the outcome. Null: the worker stops, and the claim was released. */
export async function attemptDelivery(
  context: SendContext,
  claim: DeliveryClaim,
  stopping: AbortSignal,
): Promise<Attempt | null> {
  try {
    const attempt = await send(context, claim, stopping);
    await record(context, claim, attempt);
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
    const { error, refused } = await sendMail(context, claim);
    const outcome = error === null ? 'delivered' : refused ? 'refused' : 'failed';
    return { outcome, status: null, error, retryAfterMs: null, tookMs: took() };
  }
  const { id, body } = claim.event;
  const webhook = { url: claim.target, id, body, secrets: claim.secrets };
  const { status, error, retryAfterMs } = await sendWebhook(webhook, context.policy, stopping);
  const outcome = error === null ? 'delivered' : status === 410 ? 'gone' : 'failed';
  return { outcome, status, error, retryAfterMs, tookMs: took() };
}

/** Sends the message about the event. Never throws for what the mail server does; `refused`: it will never take it. */
async function sendMail(
  { mail, linkFiles }: SendContext,
  { target, subscriptionId, event }: DeliveryClaim,
): Promise<{ readonly error: string | null; readonly refused: boolean }> {
  if (!isMailAddress(target)) return { error: 'this is no address that mail is sent to', refused: true };
  try {
    // Links open files to whoever holds them: only those get them whom the request for the export names.
    const isNamed = subscriptionId === null && event.type.startsWith('export.') && event.jobId !== null;
    const linked = isNamed ? await linkFiles(event.environmentId, event.jobId) : undefined;
    await mail.send(composeMail(JSON.parse(event.body) as EventBody, target, linked));
    return { error: null, refused: false };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { error: shortLine(reason), refused: error instanceof MailRefused };
  }
}

async function record(context: SendContext, claim: DeliveryClaim, attempt: Attempt): Promise<void> {
  const { db, log, policy } = context;
  const fields = {
    delivery_id: claim.deliveryId,
    event_id: claim.event.id,
    event_type: claim.event.type,
    attempt: claim.attempt,
    // A receiver's answer often repeats its address, which is not for the log: the ledger has it.
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
