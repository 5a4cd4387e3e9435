/** Deliveries as they are listed and shown: `deliveries.ts` has what happens to them. */
import { sql } from 'kysely';
import type { Channel, DeliveryState, EventType } from '../../domain/notification.ts';
import type { Database } from '../database.ts';

/** One event for one receiver, and how far it is. */
export interface Delivery {
  readonly publicId: string;
  readonly eventId: string;
  readonly eventType: EventType;
  readonly jobId: string | null;
  /** Null: the job itself named the address. */
  readonly subscriptionId: string | null;
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

export interface DeliveryFilter {
  readonly publicId?: string | undefined;
  /** Of the end of this job. */
  readonly jobId?: string | undefined;
  /** Those that were given up, and those whose last attempt failed. */
  readonly failed?: boolean;
  readonly states?: readonly string[] | undefined;
  readonly channel?: Channel | undefined;
  /** Made since then. */
  readonly since?: Date | null;
  /** The page after this delivery. */
  readonly after?: string | null;
  readonly limit: number;
}

/** Newest first. */
export async function listDeliveries(
  db: Database,
  environmentId: number,
  filter: DeliveryFilter,
): Promise<Delivery[]> {
  const rows = db
    .selectFrom('notification_deliveries as d')
    .innerJoin('notification_events as e', 'e.event_id', 'd.event_id')
    .leftJoin('tasks as t', (join) =>
      join.on('t.kind', '=', 'delivery').onRef('t.subject_id', '=', 'd.delivery_id'),
    )
    .select([
      'd.public_id as publicId',
      'd.event_id as eventId',
      'e.type as eventType',
      'e.job_id as jobId',
      'd.subscription_id as subscriptionId',
      'd.channel',
      'd.target',
      'd.state',
      'd.attempts',
      't.not_before as nextAt',
      'd.created_at as createdAt',
      'd.last_attempt_at as lastAttemptAt',
      'd.last_took_ms as lastTookMs',
      'd.last_status as lastStatus',
      'd.last_error as lastError',
      'd.delivered_at as deliveredAt',
    ])
    .where(matching(environmentId, filter))
    .$if(filter.after != null, (page) => page.where('d.public_id', '<', filter.after ?? null))
    .orderBy('d.public_id', 'desc')
    .limit(filter.limit);
  return (await rows.execute()).map((row) => ({
    ...row,
    eventType: row.eventType as EventType,
    channel: row.channel as Channel,
    state: row.state as DeliveryState,
  }));
}

/** How many match, on all pages. */
export async function countDeliveries(
  db: Database,
  environmentId: number,
  filter: DeliveryFilter,
): Promise<number> {
  const { count } = await db
    .selectFrom('notification_deliveries as d')
    .innerJoin('notification_events as e', 'e.event_id', 'd.event_id')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where(matching(environmentId, filter))
    .executeTakeFirstOrThrow();
  return count;
}

function matching(environmentId: number, filter: DeliveryFilter) {
  const { publicId, jobId, failed = false, states, channel, since = null } = filter;
  const conditions = [
    sql<boolean>`e.environment_id = ${environmentId}`,
    ...(publicId === undefined ? [] : [sql<boolean>`d.public_id = ${publicId}`]),
    ...(jobId === undefined ? [] : [sql<boolean>`e.job_id = ${jobId}`]),
    ...(failed ? [sql<boolean>`d.state <> 'delivered' and d.last_error is not null`] : []),
    ...(states === undefined ? [] : [sql<boolean>`d.state = any(${[...states]})`]),
    ...(channel === undefined ? [] : [sql<boolean>`d.channel = ${channel}`]),
    ...(since === null ? [] : [sql<boolean>`d.created_at >= ${since}`]),
  ];
  return sql<boolean>`${sql.join(conditions, sql` and `)}`;
}

/** What one attempt was answered. */
export interface AttemptRow {
  readonly attempt: number;
  readonly begunAt: Date;
  readonly tookMs: number;
  readonly status: number | null;
  readonly error: string | null;
}

/** The latest first. */
export function readAttempts(db: Database, publicId: string, limit: number): Promise<AttemptRow[]> {
  return db
    .selectFrom('notification_attempts')
    .innerJoin('notification_deliveries as d', 'd.delivery_id', 'notification_attempts.delivery_id')
    .select(['attempt', 'begun_at as begunAt', 'took_ms as tookMs', 'status', 'error'])
    .where('public_id', '=', publicId)
    .orderBy('attempt', 'desc')
    .limit(limit)
    .execute();
}

/** The JSON that is sent; null: the environment has no such event. */
export async function readEventBody(
  db: Database,
  environmentId: number,
  eventId: string,
): Promise<string | null> {
  const row = await db
    .selectFrom('notification_events')
    .select('body')
    .where('environment_id', '=', environmentId)
    .where('event_id', '=', eventId)
    .executeTakeFirst();
  return row?.body ?? null;
}
