import { type Selection, sql } from 'kysely';
import { uuidv7 } from '../../base/uuid.ts';
import type { Outcome } from '../../domain/job.ts';
import { camel, daysAgo, snake, type Tables } from '../../postgres/columns.ts';
import {
  changedBy,
  type Database,
  findValue,
  prepared,
  selectWhere,
  updateWhere,
} from '../../postgres/database.ts';
import type { EventType, Format, JobKind } from './api.ts';
import { killDeliveries, type Recipient, redirectDeliveries } from './delivery-store.ts';

/** Excludes the secrets. */
export type Subscription = Selection<Tables, 'notification_subscriptions', (typeof columns)[number]>;

export type NewSubscription = Pick<Subscription, 'channel' | 'target' | 'outcomes' | 'kinds'> & {
  /** Default: `null`. */
  readonly name?: string | null;
  /** Default: `standard`. */
  readonly format?: Format;
};
export type NamedSubscription = NewSubscription & { readonly name: string; readonly format: Format };

/** `secret` is `null` for mail and chats. */
export function insertSubscription(
  db: Database,
  environmentId: number,
  { name = null, channel, target, format = 'standard', outcomes, kinds }: NewSubscription,
  secret: string | null,
): Promise<Subscription> {
  return db
    .insertInto('notification_subscriptions')
    .values({
      subscription_id: uuidv7(),
      environment_id: environmentId,
      name,
      channel,
      target,
      format,
      outcomes: [...new Set(outcomes)],
      job_kinds: [...new Set(kinds)],
      secret,
    })
    .returning(columns)
    .executeTakeFirstOrThrow();
}

export function listSubscriptions(db: Database, environmentId: number): Promise<Subscription[]> {
  return selectWhere(db, 'notification_subscriptions', { environmentId })
    .select(columns)
    .where('removed_at', 'is', null)
    .orderBy('subscription_id')
    .execute();
}

export async function findSubscription(
  db: Database,
  environmentId: number,
  subscriptionId: string,
): Promise<Subscription | null> {
  const row = await selectWhere(db, 'notification_subscriptions', { environmentId, subscriptionId })
    .select(columns)
    .where('removed_at', 'is', null)
    .executeTakeFirst();
  return row ?? null;
}

export async function markSubscriptionRemoved(
  db: Database,
  environmentId: number,
  subscriptionId: string,
): Promise<boolean> {
  const { numUpdatedRows } = await updateWhere(db, 'notification_subscriptions', {
    environmentId,
    subscriptionId,
  })
    .set({ removed_at: sql<Date>`now()`, secret: null, previous_secret: null, previous_secret_until: null })
    .where('removed_at', 'is', null)
    .executeTakeFirstOrThrow();
  if (numUpdatedRows === 0n) return false;
  await killDeliveries(db, subscriptionId, 'the subscription was removed');
  return true;
}

export async function disableSubscription(
  db: Database,
  subscriptionId: string,
  reason: string,
): Promise<void> {
  await updateWhere(db, 'notification_subscriptions', { subscriptionId })
    .set({ disabled_at: sql<Date>`now()`, disabled_reason: reason })
    .where('disabled_at', 'is', null)
    .execute();
  await killDeliveries(db, subscriptionId, `the subscription is disabled: ${reason}`);
}

/**
 * Changes a subscription, but neither its channel nor whether its messages are signed. A new target
 * enables the subscription again. A webhook's pending deliveries are then sent to the new target.
 */
export async function changeSubscription(
  db: Database,
  environmentId: number,
  subscriptionId: string,
  { name, channel, target, format, outcomes, kinds }: NamedSubscription,
): Promise<void> {
  const isMoved = sql<boolean>`target <> ${target}`;
  await updateWhere(db, 'notification_subscriptions', { environmentId, subscriptionId })
    .set({
      name,
      target,
      format,
      outcomes: [...new Set(outcomes)],
      job_kinds: [...new Set(kinds)],
      disabled_at: sql<Date | null>`case when not ${isMoved} then disabled_at end`,
      disabled_reason: sql<string | null>`case when not ${isMoved} then disabled_reason end`,
    })
    .where('removed_at', 'is', null)
    .execute();
  if (channel === 'webhook') await redirectDeliveries(db, subscriptionId, target);
}

/** Returns the secrets by subscription id. They must not be shown. */
export async function readSecrets(db: Database, environmentId: number): Promise<ReadonlyMap<string, string>> {
  const rows = await selectWhere(db, 'notification_subscriptions', { environmentId })
    .select(['subscription_id', 'secret'])
    .where('secret', 'is not', null)
    .$narrowType<{ secret: string }>()
    .execute();
  return new Map(rows.map(({ subscription_id, secret }) => [subscription_id, secret]));
}

/**
 * Returns the time at which the previous secret becomes invalid, or `null` if no secret was
 * replaced.
 */
export async function replaceSecret(
  db: Database,
  environmentId: number,
  subscriptionId: string,
  secret: string,
  overlapHours: number,
): Promise<Date | null> {
  const row = await updateWhere(db, 'notification_subscriptions', { environmentId, subscriptionId })
    .set((eb) => ({
      secret,
      previous_secret: eb.ref('secret'),
      previous_secret_until: sql<Date>`now() + ${overlapHours} * interval '1 hour'`,
    }))
    .where('removed_at', 'is', null)
    .returning('previous_secret_until')
    .executeTakeFirst();
  return row?.previous_secret_until ?? null;
}

const columns = [
  ...camel(
    'subscription_id',
    'name',
    'channel',
    'target',
    'format',
    'outcomes',
    'created_at',
    'disabled_at',
    'disabled_reason',
  ),
  'job_kinds as kinds' as const,
  sql<Date | null>`case when previous_secret_until > now() then previous_secret_until end`.as(
    'previousSecretUntil',
  ),
];

export async function findSubscribed(
  db: Database,
  environmentId: number,
  kind: JobKind,
  outcome: Outcome,
): Promise<Recipient[]> {
  return selectWhere(prepared(db), 'notification_subscriptions', { environmentId })
    .select(['subscription_id as subscriptionId', 'channel', 'target'])
    .where('removed_at', 'is', null)
    .where('disabled_at', 'is', null)
    .where(sql<boolean>`outcomes @> array[${outcome}]`)
    .where(sql<boolean>`job_kinds @> array[${kind}]`)
    .orderBy('subscription_id')
    .execute();
}

export async function readSender(
  db: Database,
  environmentId: number,
): Promise<{ readonly name: string; readonly appToken: string; readonly now: Date }> {
  return selectWhere(db, 'environments', { environmentId })
    .select(['name', 'app_token as appToken', sql<Date>`now()`.as('now')])
    .executeTakeFirstOrThrow();
}

export interface NewEvent {
  readonly eventId: string;
  readonly environmentId: number;
  readonly type: EventType;
  /** `null` for a ping, a run of a schedule or a refused file. */
  readonly jobId: string | null;
  readonly body: string;
}

export async function insertEvent(
  db: Database,
  { eventId, environmentId, type, jobId, body }: NewEvent,
): Promise<void> {
  await db
    .insertInto('notification_events')
    .values(snake({ eventId, environmentId, type, jobId, body }))
    .execute();
}

export async function deleteEvents(db: Database, days: number): Promise<number> {
  const deleted = await changedBy(db)`
    delete from notification_events e
    where created_at < ${daysAgo(days)}
      and not exists (
        select 1 from notification_deliveries d where d.event_id = e.event_id and d.state = 'pending'
      )`;
  // A job that has just ended may still add a delivery, so the subscription is kept for a day.
  await sql`
    delete from notification_subscriptions s
    where removed_at < now() - interval '1 day'
      and not exists (select 1 from notification_deliveries d where d.subscription_id = s.subscription_id)`.execute(
    db,
  );
  return deleted;
}

export function readEventBody(db: Database, environmentId: number, eventId: string): Promise<string | null> {
  return findValue<string>(db)`
    select body from notification_events where environment_id = ${environmentId} and event_id = ${eventId}`;
}
