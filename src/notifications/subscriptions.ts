import { sql } from 'kysely';
import { inputError } from '../domain/errors.ts';
import { MAX_SUBSCRIPTIONS } from '../domain/limits.ts';
import { isMailAddress } from '../domain/mail-address.ts';
import type { Channel, JobKind, Outcome } from '../domain/notification.ts';
import type { Database } from '../postgres/database.ts';
import { giveUpSubscription } from '../postgres/ledger/notification-deliveries.ts';
import type { DeliveryPolicy } from './delivery-policy.ts';
import { generateSecret } from './webhook-secret.ts';
import { checkWebhookUrl } from './webhook-url.ts';

/** Who is told of an environment's jobs; its secrets are not in it. */
export interface Subscription {
  readonly subscriptionId: number;
  readonly channel: Channel;
  /** The webhook's address, or the one that mail goes to. */
  readonly target: string;
  readonly outcomes: readonly Outcome[];
  readonly kinds: readonly JobKind[];
  readonly createdAt: Date;
  /** Why nothing is sent there any more; null: it is. */
  readonly disabled: { readonly at: Date; readonly reason: string } | null;
  /** Until when webhooks are signed by the secret before too; null: they are not. */
  readonly previousSecretUntil: Date | null;
}

export interface SubscriptionWish {
  readonly channel: Channel;
  readonly target: string;
  readonly outcomes: readonly Outcome[];
  readonly kinds: readonly JobKind[];
}

/**
 * Subscribes. `secret` is told this once; null for e-mail. Throws `InputError` `invalid_field`: the target, or too many
 * subscriptions.
 */
export async function addSubscription(
  db: Database,
  environmentId: number,
  wish: SubscriptionWish,
  policy: Pick<DeliveryPolicy, 'allowHttp' | 'allowPrivate'>,
): Promise<{ readonly subscription: Subscription; readonly secret: string | null }> {
  const target = checkTarget(wish, policy);
  if ((await listSubscriptions(db, environmentId)).length >= MAX_SUBSCRIPTIONS) {
    throw inputError('invalid_field', `an environment has at most ${MAX_SUBSCRIPTIONS} subscriptions`);
  }
  const secret = wish.channel === 'webhook' ? generateSecret() : null;
  const row = await db
    .insertInto('notification_subscriptions')
    .values({
      environment_id: environmentId,
      channel: wish.channel,
      target,
      outcomes: [...new Set(wish.outcomes)],
      job_kinds: [...new Set(wish.kinds)],
      secret,
    })
    .returning(columns)
    .executeTakeFirstOrThrow();
  return { subscription: toSubscription(row), secret };
}

function checkTarget(
  { channel, target }: SubscriptionWish,
  policy: Pick<DeliveryPolicy, 'allowHttp' | 'allowPrivate'>,
): string {
  if (channel === 'webhook') return checkWebhookUrl(target, policy);
  if (isMailAddress(target)) return target;
  throw inputError('invalid_field', 'one plain address such as ada@example.com is wanted', 'email');
}

/** Oldest first; disabled ones too, removed ones not. */
export async function listSubscriptions(db: Database, environmentId: number): Promise<Subscription[]> {
  const rows = await db
    .selectFrom('notification_subscriptions')
    .select(columns)
    .where('environment_id', '=', environmentId)
    .where('removed_at', 'is', null)
    .orderBy('subscription_id')
    .execute();
  return rows.map(toSubscription);
}

/** Throws `InputError` `not_found`, also for another environment's. */
export async function requireSubscription(
  db: Database,
  environmentId: number,
  subscriptionId: number,
): Promise<Subscription> {
  const row = await db
    .selectFrom('notification_subscriptions')
    .select(columns)
    .where('environment_id', '=', environmentId)
    .where('subscription_id', '=', subscriptionId)
    .where('removed_at', 'is', null)
    .executeTakeFirst();
  if (row === undefined) throw unknown(subscriptionId);
  return toSubscription(row);
}

/**
 * Nothing is sent there any more, and its secrets are forgotten. What was sent stays listed. Throws `InputError`
 * `not_found`.
 */
export async function removeSubscription(
  db: Database,
  environmentId: number,
  subscriptionId: number,
): Promise<void> {
  const { numUpdatedRows } = await db
    .updateTable('notification_subscriptions')
    .set({
      removed_at: sql<Date>`now()`,
      secret: null,
      previous_secret: null,
      previous_secret_until: null,
    })
    .where('environment_id', '=', environmentId)
    .where('subscription_id', '=', subscriptionId)
    .where('removed_at', 'is', null)
    .executeTakeFirstOrThrow();
  if (numUpdatedRows === 0n) throw unknown(subscriptionId);
  await giveUpSubscription(db, subscriptionId, 'the subscription was removed');
}

/**
 * A new secret, told this once. For `overlapHours` webhooks are signed by the one before too, so that the receiver can
 * change over; one older still is good no more. Throws `InputError`: `not_found`, or `invalid_field` for e-mail.
 */
export async function rotateSecret(
  db: Database,
  environmentId: number,
  subscriptionId: number,
  overlapHours: number,
): Promise<{ readonly secret: string; readonly previousUntil: Date }> {
  const { channel } = await requireSubscription(db, environmentId, subscriptionId);
  if (channel !== 'webhook') throw inputError('invalid_field', 'only webhooks have a secret');
  const secret = generateSecret();
  const row = await db
    .updateTable('notification_subscriptions')
    .set((eb) => ({
      secret,
      previous_secret: eb.ref('secret'),
      previous_secret_until: sql<Date>`now() + ${overlapHours} * interval '1 hour'`,
    }))
    .where('environment_id', '=', environmentId)
    .where('subscription_id', '=', subscriptionId)
    .where('removed_at', 'is', null)
    .returning('previous_secret_until')
    .executeTakeFirst();
  if (row?.previous_secret_until == null) throw unknown(subscriptionId);
  return { secret, previousUntil: row.previous_secret_until };
}

/** Its receiver wants no more. What waits for it is given up. */
export async function disableSubscription(
  db: Database,
  subscriptionId: number,
  reason: string,
): Promise<void> {
  await db
    .updateTable('notification_subscriptions')
    .set({ disabled_at: sql<Date>`now()`, disabled_reason: reason })
    .where('subscription_id', '=', subscriptionId)
    .where('disabled_at', 'is', null)
    .execute();
  await giveUpSubscription(db, subscriptionId, `the subscription is disabled: ${reason}`);
}

function unknown(subscriptionId: number): Error {
  return inputError(
    'not_found',
    'the environment has no such subscription',
    `subscription: ${subscriptionId}`,
  );
}

const columns = [
  'subscription_id',
  'channel',
  'target',
  'outcomes',
  'job_kinds',
  'created_at',
  'disabled_at',
  'disabled_reason',
  sql<Date | null>`case when previous_secret_until > now() then previous_secret_until end`.as(
    'previous_until',
  ),
] as const;

interface SubscriptionRow {
  subscription_id: number;
  channel: string;
  target: string;
  outcomes: string[];
  job_kinds: string[];
  created_at: Date;
  disabled_at: Date | null;
  disabled_reason: string | null;
  previous_until: Date | null;
}

function toSubscription(row: SubscriptionRow): Subscription {
  return {
    subscriptionId: row.subscription_id,
    channel: row.channel as Channel,
    target: row.target,
    outcomes: row.outcomes as Outcome[],
    kinds: row.job_kinds as JobKind[],
    createdAt: row.created_at,
    disabled: row.disabled_at === null ? null : { at: row.disabled_at, reason: row.disabled_reason ?? '' },
    previousSecretUntil: row.previous_until,
  };
}
