import { sql } from 'kysely';
import { uuidv7 } from 'uuidv7';
import type { Channel, EventType, JobKind, Outcome } from '../../domain/notification.ts';
import type { Database } from '../database.ts';
import { killDeliveries, type Recipient } from './deliveries.ts';

/* Subscriptions, and the events of which they are notified. The deliveries of events: deliveries.ts. */

/** Who is notified of an environment's jobs; without its secrets. */
export interface Subscription {
  readonly subscriptionId: string;
  readonly channel: Channel;
  /** The webhook's address, or the mail address. */
  readonly target: string;
  readonly outcomes: readonly Outcome[];
  readonly kinds: readonly JobKind[];
  readonly createdAt: Date;
  /** Why nothing is sent there any more; null: it is. */
  readonly disabled: { readonly at: Date; readonly reason: string } | null;
  /** Until when webhooks are signed by the previous secret too; null: they are not. */
  readonly previousSecretUntil: Date | null;
}

export type NewSubscription = Pick<Subscription, 'channel' | 'target' | 'outcomes' | 'kinds'>;

/** `secret`: null for mail. */
export async function insertSubscription(
  db: Database,
  environmentId: number,
  { channel, target, outcomes, kinds }: NewSubscription,
  secret: string | null,
): Promise<Subscription> {
  const row = await db
    .insertInto('notification_subscriptions')
    .values({
      subscription_id: uuidv7(),
      environment_id: environmentId,
      channel,
      target,
      outcomes: [...new Set(outcomes)],
      job_kinds: [...new Set(kinds)],
      secret,
    })
    .returning(columns)
    .executeTakeFirstOrThrow();
  return toSubscription(row);
}

/** Oldest first, disabled ones too; removed ones are left out. */
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

export async function findSubscription(
  db: Database,
  environmentId: number,
  subscriptionId: string,
): Promise<Subscription | null> {
  const row = await db
    .selectFrom('notification_subscriptions')
    .select(columns)
    .where('environment_id', '=', environmentId)
    .where('subscription_id', '=', subscriptionId)
    .where('removed_at', 'is', null)
    .executeTakeFirst();
  return row === undefined ? null : toSubscription(row);
}

/** Nothing more is sent there, and its secrets are forgotten. What was sent stays listed. False: there is none. */
export async function markSubscriptionRemoved(
  db: Database,
  environmentId: number,
  subscriptionId: string,
): Promise<boolean> {
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
  if (numUpdatedRows === 0n) return false;
  await killDeliveries(db, subscriptionId, 'the subscription was removed');
  return true;
}

/** Nothing more is sent there, since its receiver does not want it. */
export async function disableSubscription(
  db: Database,
  subscriptionId: string,
  reason: string,
): Promise<void> {
  await db
    .updateTable('notification_subscriptions')
    .set({ disabled_at: sql<Date>`now()`, disabled_reason: reason })
    .where('subscription_id', '=', subscriptionId)
    .where('disabled_at', 'is', null)
    .execute();
  await killDeliveries(db, subscriptionId, `the subscription is disabled: ${reason}`);
}

/** Returns until when the previous secret signs too; null: there is no such subscription. */
export async function replaceSecret(
  db: Database,
  environmentId: number,
  subscriptionId: string,
  secret: string,
  overlapHours: number,
): Promise<Date | null> {
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
  return row?.previous_secret_until ?? null;
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
  subscription_id: string;
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

/** Who has subscribed to this end of a job. */
export async function findSubscribed(
  db: Database,
  environmentId: number,
  kind: JobKind,
  outcome: Outcome,
): Promise<Recipient[]> {
  const rows = await db
    .selectFrom('notification_subscriptions')
    .select(['subscription_id as subscriptionId', 'channel', 'target'])
    .where('environment_id', '=', environmentId)
    .where('removed_at', 'is', null)
    .where('disabled_at', 'is', null)
    .where(sql<boolean>`outcomes @> array[${outcome}]`)
    .where(sql<boolean>`job_kinds @> array[${kind}]`)
    .orderBy('subscription_id')
    .execute();
  return rows.map((row) => ({ ...row, channel: row.channel as Channel }));
}

/** What an event says of its environment, and the time of the transaction. */
export async function readSender(
  db: Database,
  environmentId: number,
): Promise<{ readonly name: string; readonly appToken: string; readonly now: Date }> {
  return db
    .selectFrom('environments')
    .select(['name', 'app_token as appToken', sql<Date>`now()`.as('now')])
    .where('environment_id', '=', environmentId)
    .executeTakeFirstOrThrow();
}

export interface NewEvent {
  readonly eventId: string;
  readonly environmentId: number;
  readonly type: EventType;
  /** Null for a ping, and for a run. */
  readonly jobId: string | null;
  readonly body: string;
}

/** Call it in the transaction that the event is about. */
export async function insertEvent(db: Database, event: NewEvent): Promise<void> {
  await db
    .insertInto('notification_events')
    .values({
      event_id: event.eventId,
      environment_id: event.environmentId,
      type: event.type,
      job_id: event.jobId,
      body: event.body,
    })
    .execute();
}

/** Forgets old events without a pending delivery, and removed subscriptions that nothing refers to; how many events. */
export async function deleteEvents(db: Database, days: number): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('notification_events')
    .where('created_at', '<', sql<Date>`now() - ${days} * interval '1 day'`)
    .where((eb) =>
      eb.not(
        eb.exists(
          eb
            .selectFrom('notification_deliveries as d')
            .select('delivery_id')
            .whereRef('d.event_id', '=', 'notification_events.event_id')
            .where('state', '=', 'pending'),
        ),
      ),
    )
    .executeTakeFirst();
  await db
    .deleteFrom('notification_subscriptions as s')
    // A job that ends now may have read it before it was removed.
    .where('removed_at', '<', sql<Date>`now() - interval '1 day'`)
    .where((eb) =>
      eb.not(
        eb.exists(
          eb
            .selectFrom('notification_deliveries as d')
            .select('delivery_id')
            .whereRef('d.subscription_id', '=', 's.subscription_id'),
        ),
      ),
    )
    .execute();
  return Number(numDeletedRows);
}
