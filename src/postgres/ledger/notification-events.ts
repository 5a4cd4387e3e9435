import { sql } from 'kysely';
import type { Channel, EventType, JobKind, Outcome } from '../../domain/notification.ts';
import type { Database } from '../database.ts';
import type { DueDelivery } from './notification-deliveries.ts';

/** Somebody to be told of one event. */
export interface Recipient {
  /** Null: the job itself named the address. */
  readonly subscriptionId: number | null;
  readonly channel: Channel;
  readonly target: string;
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

export interface NewEvent {
  readonly eventId: string;
  readonly environmentId: number;
  readonly type: EventType;
  /** Null for a ping. */
  readonly jobId: string | null;
  readonly body: string;
}

/**
 * Writes an event and whom it goes to; call it in the transaction that it tells of. An address that comes twice is told
 * once. `attempts`: how often each is tried.
 */
export async function insertEvent(
  db: Database,
  event: NewEvent,
  recipients: readonly Recipient[],
  attempts: number,
): Promise<DueDelivery[]> {
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
  return db
    .insertInto('notification_deliveries')
    .values(
      recipients.map(({ subscriptionId, channel, target }) => ({
        event_id: event.eventId,
        subscription_id: subscriptionId,
        channel,
        target,
        attempts_left: attempts,
      })),
    )
    .onConflict((conflict) => conflict.doNothing())
    .returning(['delivery_id as deliveryId', 'attempt'])
    .execute();
}

/** Forgets events of long ago of which nobody is still to be told, and subscriptions that nothing refers to any more. */
export async function deleteEvents(db: Database, days: number): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('notification_events')
    .where('created_at', '<', sql<Date>`now() - ${days} * interval '1 day'`)
    .where((eb) =>
      eb.not(
        eb.exists(
          eb
            .selectFrom('notification_deliveries')
            .select('delivery_id')
            .whereRef('notification_deliveries.event_id', '=', 'notification_events.event_id')
            .where('state', '=', 'pending'),
        ),
      ),
    )
    .executeTakeFirst();
  await db
    .deleteFrom('notification_subscriptions')
    // A job that ends now may have read it before it was removed.
    .where('removed_at', '<', sql<Date>`now() - interval '1 day'`)
    .where((eb) =>
      eb.not(
        eb.exists(
          eb
            .selectFrom('notification_deliveries')
            .select('delivery_id')
            .whereRef(
              'notification_deliveries.subscription_id',
              '=',
              'notification_subscriptions.subscription_id',
            ),
        ),
      ),
    )
    .execute();
  return Number(numDeletedRows);
}
