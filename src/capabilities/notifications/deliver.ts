import type pg from 'pg';
import type { Config } from '../../base/config.ts';
import { ConflictError, FinalFailure, messageOf } from '../../base/errors.ts';
import { isMailAddress } from '../../base/mail-address.ts';
import { growing } from '../../base/retry.ts';
import type { TaskClaim } from '../../domain/task.ts';
import { endTask, releaseTask } from '../../tasks/store.ts';
import type { TaskContext } from '../../tasks/task-kind.ts';
import { type AttemptReport, beginAttempt, type DeliveryAttempt, endAttempt } from './delivery-store.ts';
import { composeMail, type LinkedFiles, type MailTransport } from './mail.ts';
import type { DeliveryState } from './names.ts';
import type { EventBody } from './record.ts';
import { sendWebhook, shortLine, type WebhookRules } from './send-webhook.ts';
import { disableSubscription } from './subscription-store.ts';

const minuteMs = 60_000;

export interface DeliveryPolicy extends WebhookRules {
  /** Also the attempts of a replay. */
  readonly attempts: number;
  /** After the first attempt. */
  readonly firstPauseMs: number;
  /** Ratio of each pause to the one before. */
  readonly pauseFactor: number;
  /** Random share of a pause, added or subtracted, that spreads simultaneous failures. */
  readonly jitter: number;
  /** Longest pause that a receiver may ask for (`Retry-After`). */
  readonly longestAskedPauseMs: number;
}

/** Eight attempts. Pauses: 15 s, 1, 4, 16 and 64 minutes, 4.3 and 17 hours, most of a day. */
export function readDeliveryPolicy(config: Pick<Config, 'notifyAllowPrivate'>): DeliveryPolicy {
  return {
    attempts: 8,
    firstPauseMs: minuteMs / 4,
    pauseFactor: 4,
    jitter: 0.2,
    longestAskedPauseMs: 6 * 60 * minuteMs,
    connectTimeoutMs: 5_000,
    totalTimeoutMs: 15_000,
    allowPrivate: config.notifyAllowPrivate,
  };
}

/** Returns the pause in ms after attempt `attempt`, from 1. `chance` is 0 to 1. */
export function pauseAfter(
  policy: DeliveryPolicy,
  attempt: number,
  askedMs: number | null,
  chance = Math.random(),
): number {
  const pause = growing(policy.firstPauseMs, Number.POSITIVE_INFINITY, policy.pauseFactor)(attempt);
  const jittered = pause * (1 + policy.jitter * (2 * chance - 1));
  return Math.round(Math.max(jittered, Math.min(askedMs ?? 0, policy.longestAskedPauseMs)));
}

export interface SendContext extends TaskContext {
  readonly pool: pg.Pool;
  readonly mail: MailTransport;
  readonly deliveryPolicy: DeliveryPolicy;
  /** Files of an export with links signed now. None unless it is completed and they are kept. */
  readonly linkFiles: (environmentId: number, jobId: string) => Promise<LinkedFiles>;
}

/** `refused`: retries would not help. `gone`: the receiver wants no more. */
export interface Attempt extends AttemptReport {
  readonly outcome: 'delivered' | 'failed' | 'refused' | 'gone';
  readonly retryAfterMs: number | null;
}

/** Tries the delivery of a task once. */
export async function deliverNotification(
  context: SendContext,
  claim: TaskClaim,
  signal: AbortSignal,
): Promise<void> {
  const delivery = await beginAttempt(context.db, claim.subjectId);
  if (delivery === null) {
    await endTask(context.db, claim);
    return;
  }
  const attempt = await attemptDelivery(context, delivery, signal);
  const { attempts } = context.deliveryPolicy;
  const isPending = attempt.outcome === 'failed' && claim.failures + 1 < attempts;
  const state = isPending ? 'pending' : attempt.outcome === 'delivered' ? 'delivered' : 'dead';
  await recordAttempt(context, claim, state, attempt);
  await followUp(context, delivery, state, attempt);
}

/** @throws Interrupted if `signal` is aborted. */
async function attemptDelivery(
  context: SendContext,
  delivery: DeliveryAttempt,
  signal: AbortSignal,
): Promise<Attempt> {
  const began = performance.now();
  const took = (): number => Math.round(performance.now() - began);
  if (delivery.closed !== null) {
    return { outcome: 'refused', status: null, error: delivery.closed, retryAfterMs: null, tookMs: 0 };
  }
  if (delivery.channel === 'email') {
    const { error, refused } = await sendMail(context, delivery);
    const outcome = error === null ? 'delivered' : refused ? 'refused' : 'failed';
    return { outcome, status: null, error, retryAfterMs: null, tookMs: took() };
  }
  const { id, body } = delivery.event;
  const webhook = { url: delivery.target, id, body, secrets: delivery.secrets };
  const { status, error, retryAfterMs } = await sendWebhook(webhook, context.deliveryPolicy, signal);
  const outcome = error === null ? 'delivered' : status === 410 ? 'gone' : 'failed';
  return { outcome, status, error, retryAfterMs, tookMs: took() };
}

/** Never throws for errors of the mail server. `refused`: it will never take the message. */
async function sendMail(
  { mail, linkFiles }: SendContext,
  { target, subscriptionId, event }: DeliveryAttempt,
): Promise<{ readonly error: string | null; readonly refused: boolean }> {
  if (!isMailAddress(target)) return { error: 'this is no address that mail is sent to', refused: true };
  try {
    // Links open files to anyone. Only the recipients named by the export request get them.
    const isNamed = subscriptionId === null && event.type.startsWith('export.') && event.jobId !== null;
    const linked = isNamed ? await linkFiles(event.environmentId, event.jobId) : undefined;
    await mail.send(composeMail(JSON.parse(event.body) as EventBody, target, linked));
    return { error: null, refused: false };
  } catch (error) {
    const reason = messageOf(error);
    return { error: shortLine(reason), refused: error instanceof FinalFailure };
  }
}

/** The outcome and the fence of the task commit together. */
async function recordAttempt(
  { db, deliveryPolicy }: SendContext,
  claim: TaskClaim,
  state: DeliveryState,
  attempt: Attempt,
): Promise<void> {
  await db.transaction().execute(async (transaction) => {
    await endAttempt(transaction, claim.subjectId, state, attempt);
    const isOurs =
      state === 'pending'
        ? await releaseTask(transaction, claim, {
            message: attempt.error,
            pauseMs: pauseAfter(deliveryPolicy, claim.failures + 1, attempt.retryAfterMs),
            counts: true,
          })
        : await endTask(transaction, claim);
    if (isOurs === null || isOurs === false) throw new ConflictError('another worker has the delivery');
  });
}

async function followUp(
  { db, log }: SendContext,
  { publicId, subscriptionId, event }: DeliveryAttempt,
  state: DeliveryState,
  { outcome, status, error }: Attempt,
): Promise<void> {
  const fields = {
    delivery_id: publicId,
    event_id: event.id,
    event_type: event.type,
    // A receiver's answer may repeat its address. That is in the ledger, not in the log.
    ...(status === null ? { reason: error } : { status }),
  };
  if (state === 'delivered') log.info(fields, 'notification delivered');
  else if (state === 'pending')
    log.warn(fields, 'a notification could not be delivered; it will be tried again');
  else log.error(fields, 'a notification was given up');
  if (outcome !== 'gone' || subscriptionId === null) return;
  await disableSubscription(db, subscriptionId, 'its receiver answered 410 Gone');
  log.warn({ subscription_id: subscriptionId }, 'a subscription was disabled: its receiver is gone');
}

/** Sends a delivery without a task, once. It is then delivered or dead. */
export async function deliverOnce(context: SendContext, delivery: DeliveryAttempt): Promise<Attempt> {
  const attempt = await attemptDelivery(context, delivery, new AbortController().signal);
  const state = attempt.outcome === 'delivered' ? 'delivered' : 'dead';
  await endAttempt(context.db, delivery.deliveryId, state, attempt);
  await followUp(context, delivery, state, attempt);
  return attempt;
}
