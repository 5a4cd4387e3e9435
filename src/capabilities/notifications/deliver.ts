import type pg from 'pg';
import type { Config } from '../../base/config.ts';
import { FinalFailure, messageOf } from '../../base/errors.ts';
import { isMailAddress } from '../../base/mail-address.ts';
import { growing } from '../../base/retry.ts';
import type { System } from '../../context.ts';
import type { TaskClaim } from '../../domain/task.ts';
import { linkFilesForMail } from '../../export/file-links.ts';
import { endTask, LostClaim, releaseTask } from '../../tasks/store.ts';
import type { TaskContext } from '../../tasks/task-kind.ts';
import type { DeliveryState } from './api.ts';
import { formats } from './brief.ts';
import { type AttemptReport, beginAttempt, type DeliveryAttempt, endAttempt } from './delivery-store.ts';
import { composeMail, type LinkedFiles, type MailTransport, openMailTransport } from './mail.ts';
import type { EventBody } from './record.ts';
import { sendWebhook, shortLine, type WebhookRules } from './send-webhook.ts';
import { disableSubscription } from './subscription-store.ts';

const minuteMs = 60_000;

export interface DeliveryPolicy extends WebhookRules {
  /** Maximum number of attempts. A replay gets the same number again. */
  readonly attempts: number;
  readonly firstPauseMs: number;
  readonly pauseFactor: number;
  /**
   * Fraction by which a pause is randomly changed, so that failed deliveries are not all retried at
   * the same time.
   */
  readonly jitter: number;
  readonly longestAskedPauseMs: number;
}

/** The pauses between the eight attempts grow from 15 seconds to about 17 hours. */
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

/** `attempt` is counted from 1. `chance` is a random number from 0 to 1. */
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
  /** Returns links to the files of the job. The result is empty unless these files exist. */
  readonly linkFiles: (environmentId: number, jobId: string) => Promise<LinkedFiles>;
}

/** `refused`: the receiver will never accept the event. `gone`: it will not accept any event. */
export interface Attempt extends AttemptReport {
  readonly outcome: 'delivered' | 'failed' | 'refused' | 'gone';
  readonly retryAfterMs: number | null;
}

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
  const canRetry = attempt.outcome === 'failed' && claim.failures + 1 < attempts;
  const state = canRetry ? 'pending' : endStateOf(attempt);
  await recordAttempt(context, claim, state, attempt);
  logAttempt(context, delivery, state, attempt);
  await disableIfGone(context, delivery, attempt);
}

function endStateOf({ outcome }: Attempt): DeliveryState {
  return outcome === 'delivered' ? 'delivered' : 'dead';
}

/** @throws Interrupted if `signal` is aborted */
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
    const { error, refused: isRefused } = await sendMail(context, delivery);
    const failure = isRefused ? 'refused' : 'failed';
    const outcome = error === null ? 'delivered' : failure;
    return { outcome, status: null, error, retryAfterMs: null, tookMs: took() };
  }
  const { id, body } = delivery.event;
  const { target: url, secrets, format } = delivery;
  const webhook = { url, id, body: formats[format](body), secrets };
  const { status, error, retryAfterMs } = await sendWebhook(webhook, context.deliveryPolicy, signal);
  const failure = status === 410 ? 'gone' : 'failed';
  const outcome = error === null ? 'delivered' : failure;
  return { outcome, status, error, retryAfterMs, tookMs: took() };
}

/**
 * Sends an event as mail. Does not throw. `refused` is true if the mail server will never accept
 * the message.
 */
async function sendMail(
  { mail, linkFiles }: SendContext,
  { target, subscriptionId, event }: DeliveryAttempt,
): Promise<{ readonly error: string | null; readonly refused: boolean }> {
  if (!isMailAddress(target)) return { error: 'this is no address that mail is sent to', refused: true };
  try {
    // Anyone can open the links, so only the recipients named in the export request receive them.
    const isNamed = subscriptionId === null && event.type.startsWith('export.') && event.jobId !== null;
    const linked = isNamed ? await linkFiles(event.environmentId, event.jobId) : undefined;
    await mail.send(composeMail(JSON.parse(event.body) as EventBody, target, linked));
    return { error: null, refused: false };
  } catch (error) {
    const reason = messageOf(error);
    return { error: shortLine(reason), refused: error instanceof FinalFailure };
  }
}

async function recordAttempt(
  { db, deliveryPolicy }: SendContext,
  claim: TaskClaim,
  state: DeliveryState,
  attempt: Attempt,
): Promise<void> {
  await db.transaction().execute(async (transaction) => {
    await endAttempt(transaction, claim.subjectId, state, attempt);
    if (state !== 'pending') return endTask(transaction, claim);
    const pauseMs = pauseAfter(deliveryPolicy, claim.failures + 1, attempt.retryAfterMs);
    const setback = { message: attempt.error, pauseMs, counts: true };
    if ((await releaseTask(transaction, claim, setback)) === null) throw new LostClaim();
  });
}

function logAttempt(
  { log }: SendContext,
  { publicId, event }: DeliveryAttempt,
  state: DeliveryState,
  { status, error }: Attempt,
): void {
  const fields = {
    delivery_id: publicId,
    event_id: event.id,
    event_type: event.type,
    // A response may contain the receiver's address, which must not be logged.
    ...(status === null ? { reason: error } : { status }),
  };
  if (state === 'delivered') log.info(fields, 'notification delivered');
  else if (state === 'pending')
    log.warn(fields, 'a notification could not be delivered; it will be tried again');
  else log.error(fields, 'a notification was given up');
}

async function disableIfGone(
  { db, log }: SendContext,
  { subscriptionId }: DeliveryAttempt,
  { outcome }: Attempt,
): Promise<void> {
  if (outcome !== 'gone' || subscriptionId === null) return;
  await disableSubscription(db, subscriptionId, 'its receiver answered 410 Gone');
  log.warn({ subscription_id: subscriptionId }, 'a subscription was disabled: its receiver is gone');
}

/**
 * A failed attempt makes the delivery dead. The caller reports the outcome, so it is not logged.
 */
export async function deliverOnce(context: SendContext, delivery: DeliveryAttempt): Promise<Attempt> {
  const attempt = await attemptDelivery(context, delivery, new AbortController().signal);
  await endAttempt(context.db, delivery.deliveryId, endStateOf(attempt), attempt);
  await disableIfGone(context, delivery, attempt);
  return attempt;
}

/** The caller must close `mail`. */
export function openSendContext(
  system: Pick<System, 'config' | 'pool' | 'db' | 'queue' | 'log' | 'files' | 'baseUrl'>,
): SendContext {
  const { config, log } = system;
  return {
    ...system,
    mail: openMailTransport(config, log),
    deliveryPolicy: readDeliveryPolicy(config),
    linkFiles: (environmentId, jobId) => linkFilesForMail(system, environmentId, jobId),
  };
}
