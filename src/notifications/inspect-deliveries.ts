import type { Channel, DeliveryState, EventType } from '../domain/notification.ts';
import type { Database } from '../postgres/database.ts';

/** One event for one receiver, and how far the telling is. */
export interface Delivery {
  readonly deliveryId: number;
  readonly eventId: string;
  readonly eventType: EventType;
  readonly jobId: string | null;
  /** Null: the job itself named the address. */
  readonly subscriptionId: number | null;
  readonly channel: Channel;
  readonly target: string;
  readonly state: DeliveryState;
  readonly attempts: number;
  /** When it is tried next; null unless it is pending. */
  readonly nextAt: Date | null;
  readonly createdAt: Date;
  readonly lastAttemptAt: Date | null;
  readonly lastTookMs: number | null;
  readonly lastStatus: number | null;
  readonly lastError: string | null;
  readonly deliveredAt: Date | null;
}

/** Newest first. `failed`: those that were given up, and those whose last attempt failed. */
export async function listDeliveries(
  db: Database,
  environmentId: number,
  filter: { readonly failed: boolean; readonly limit: number },
): Promise<Delivery[]> {
  let rows = db
    .selectFrom('notification_deliveries as d')
    .innerJoin('notification_events as e', 'e.event_id', 'd.event_id')
    .select([
      'd.delivery_id as deliveryId',
      'd.event_id as eventId',
      'e.type as eventType',
      'e.job_id as jobId',
      'd.subscription_id as subscriptionId',
      'd.channel',
      'd.target',
      'd.state',
      'd.attempt as attempts',
      'd.next_at as nextAt',
      'd.created_at as createdAt',
      'd.last_attempt_at as lastAttemptAt',
      'd.last_took_ms as lastTookMs',
      'd.last_status as lastStatus',
      'd.last_error as lastError',
      'd.delivered_at as deliveredAt',
    ])
    .where('e.environment_id', '=', environmentId)
    .orderBy('d.delivery_id', 'desc')
    .limit(filter.limit);
  if (filter.failed) rows = rows.where('d.state', '<>', 'delivered').where('d.last_error', 'is not', null);
  return (await rows.execute()).map((row) => ({
    ...row,
    eventType: row.eventType as EventType,
    channel: row.channel as Channel,
    state: row.state as DeliveryState,
    nextAt: row.state === 'pending' ? row.nextAt : null,
  }));
}
