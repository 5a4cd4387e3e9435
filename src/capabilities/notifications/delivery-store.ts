import { sql } from 'kysely';
import { uuidv7 } from '../../base/uuid.ts';
import type { DueTask } from '../../domain/task.ts';
import { camel } from '../../postgres/columns.ts';
import {
  changedBy,
  countOf,
  type Database,
  deleteWhere,
  prepared,
  rowsOf,
  updateWhere,
} from '../../postgres/database.ts';
import type { Channel, DeliveryState } from './api.ts';

/*
 * A delivery sends one event to one receiver: pending → delivered | dead. A replay makes the
 * delivery pending again. A pending delivery has a task of kind `delivery`. The tasks are grouped
 * by subscription.
 */

export interface Recipient {
  /** `null` if the job itself names the recipient. */
  readonly subscriptionId: string | null;
  readonly channel: Channel;
  readonly target: string;
}

/** Receivers with the same mail address share a delivery. Returns the ids of the deliveries. */
export async function insertDeliveries(
  db: Database,
  eventId: string,
  recipients: readonly Recipient[],
): Promise<number[]> {
  const rows = await db
    .insertInto('notification_deliveries')
    .values(
      recipients.map(({ subscriptionId, channel, target }) => ({
        public_id: uuidv7(),
        event_id: eventId,
        subscription_id: subscriptionId,
        channel,
        target,
      })),
    )
    .onConflict((conflict) => conflict.doNothing())
    .returning('delivery_id')
    .execute();
  return rows.map((row) => row.delivery_id);
}

export function queueDeliveries(db: Database, deliveryIds: readonly number[]): Promise<DueTask[]> {
  return rowsOf<DueTask>(db)`
    insert into tasks as t (kind, subject_id, environment_id, job_id, group_id, notified_at)
    select 'delivery', d.delivery_id, e.environment_id, e.job_id, d.subscription_id, now()
    from notification_deliveries d
    join notification_events e using (event_id)
    where d.delivery_id = any (${[...deliveryIds]}::bigint[])
    order by d.delivery_id
    on conflict (kind, subject_id, part) do update
    set
      not_before = excluded.notified_at,
      waiting_since = excluded.notified_at,
      notified_at = excluded.notified_at,
      failures = 0,
      losses = 0
    where t.lease_until is null
    returning t.task_id as "taskId", t.kind, t.attempt`;
}

/** `closed` is the reason why the receiver no longer gets events, or `null`. */
export type DeliveryAttempt = NonNullable<Awaited<ReturnType<typeof beginAttempt>>>;

export async function beginAttempt(db: Database, deliveryId: number) {
  const row = await db
    .updateTable('notification_deliveries as d')
    .from('notification_events as e')
    .set((eb) => ({ attempts: eb('d.attempts', '+', 1), last_attempt_at: sql`now()` }))
    .whereRef('e.event_id', '=', 'd.event_id')
    .where((eb) => eb.and({ 'd.delivery_id': deliveryId, 'd.state': 'pending' }))
    .returning(camel('d.delivery_id', 'd.public_id', 'd.subscription_id', 'd.channel', 'd.target'))
    .returning(camel('e.event_id', 'e.environment_id', 'e.type', 'e.job_id', 'e.body'))
    .executeTakeFirst();
  if (row === undefined) return null;
  const { eventId, environmentId, type, jobId, body, ...delivery } = row;
  const event = { id: eventId, environmentId, type, jobId, body } as const;
  return { ...delivery, event, ...(await readReceiver(db, row.subscriptionId)) };
}

async function readReceiver(db: Database, subscriptionId: string | null) {
  const row = await db
    .selectFrom('notification_subscriptions')
    .where('subscription_id', '=', subscriptionId)
    .select([
      'secret',
      'format',
      sql<string | null>`case when previous_secret_until > now() then previous_secret end`.as('previous'),
      sql<string | null>`case
        when removed_at is not null then 'the subscription was removed'
        when disabled_at is not null then 'the subscription is disabled: ' || disabled_reason
      end`.as('closed'),
    ])
    .executeTakeFirst();
  const secrets = [row?.secret ?? null, row?.previous ?? null].filter((secret) => secret !== null);
  return { secrets, format: row?.format ?? ('standard' as const), closed: row?.closed ?? null };
}

export interface AttemptReport {
  readonly status: number | null;
  readonly error: string | null;
  readonly tookMs: number;
}

/** Must be called in the transaction that ends or releases the attempt's task. */
export async function endAttempt(
  db: Database,
  deliveryId: number,
  state: DeliveryState,
  { status, error, tookMs }: AttemptReport,
): Promise<void> {
  await updateWhere(db, 'notification_deliveries', { deliveryId })
    .set({
      state,
      last_status: status,
      last_error: error,
      last_took_ms: tookMs,
      // A value of `undefined` leaves the column unchanged.
      delivered_at: state === 'delivered' ? sql<Date>`now()` : undefined,
    })
    .execute();
  await sql`
    insert into notification_attempts (delivery_id, attempt, begun_at, took_ms, status, error)
    select delivery_id, attempts, coalesce(last_attempt_at, now()), ${tookMs}, ${status}::int, ${error}::text
    from notification_deliveries
    where delivery_id = ${deliveryId}
    on conflict do nothing`.execute(db);
}

export async function killDelivery(db: Database, deliveryId: number, reason: string): Promise<void> {
  await db.transaction().execute(async (transaction) => {
    await updateWhere(transaction, 'notification_deliveries', { deliveryId, state: 'pending' })
      .set({ state: 'dead', last_error: reason })
      .execute();
    await deleteWhere(transaction, 'tasks', { kind: 'delivery', subjectId: deliveryId }).execute();
  });
}

export async function redirectDeliveries(
  db: Database,
  subscriptionId: string,
  target: string,
): Promise<void> {
  await updateWhere(db, 'notification_deliveries', { subscriptionId })
    .set({ target })
    .where('state', '=', 'pending')
    .execute();
}

/**
 * Makes the pending deliveries dead, except deliveries that are being sent. Locks a delivery before
 * its task, as a replay does.
 */
export async function killDeliveries(db: Database, subscriptionId: string, reason: string): Promise<void> {
  await sql`
    with pending as materialized (
      select delivery_id
      from notification_deliveries
      where subscription_id = ${subscriptionId} and state = 'pending'
      order by delivery_id
      for update
    ),
    dropped as (
      delete from tasks t
      using pending p
      where t.kind = 'delivery' and t.subject_id = p.delivery_id and t.lease_until is null
      returning t.subject_id
    )
    update notification_deliveries d
    set state = 'dead', last_error = ${reason}
    from dropped
    where d.delivery_id = dropped.subject_id and d.state = 'pending'`.execute(db);
}

/** A pending delivery without a task is a ping whose process was killed. */
export function killLostDeliveries(db: Database): Promise<number> {
  return changedBy(prepared(db))`
    update notification_deliveries d
    set state = 'dead', last_error = 'the process that sent it was lost'
    where d.state = 'pending'
      and d.created_at < now() - interval '1 minute'
      and not exists (select 1 from tasks t where t.kind = 'delivery' and t.subject_id = d.delivery_id)`;
}

const mostReplayed = 10_000;

export type Replay = { readonly publicId: string } | { readonly failedSince: Date };

/** Excludes deliveries that are being sent, or whose subscription has ended or is disabled. */
export function reopenDeliveries(
  db: Database,
  environmentId: number,
  replay: Replay,
): Promise<{ readonly deliveryId: number; readonly publicId: string }[]> {
  const condition =
    'publicId' in replay
      ? sql`d.public_id = ${replay.publicId}`
      : sql`d.state = 'dead' and d.created_at >= ${replay.failedSince}`;
  return rowsOf<{ deliveryId: number; publicId: string }>(db)`
    with chosen as (
      select d.delivery_id
      from notification_deliveries d
      join notification_events e on e.event_id = d.event_id
      left join notification_subscriptions s on s.subscription_id = d.subscription_id
      where e.environment_id = ${environmentId}
        and ${condition}
        and s.removed_at is null
        and s.disabled_at is null
        and not exists (
          select 1
          from tasks t
          where t.kind = 'delivery' and t.subject_id = d.delivery_id and t.lease_until is not null
        )
      order by d.delivery_id
      limit ${mostReplayed}
    )
    update notification_deliveries d
    set state = 'pending', delivered_at = null
    from chosen
    where d.delivery_id = chosen.delivery_id
    returning d.delivery_id as "deliveryId", d.public_id as "publicId"`;
}

export type Delivery = Awaited<ReturnType<typeof listDeliveries>>[number];

export interface DeliveryFilter {
  readonly publicId?: string | undefined;
  readonly jobId?: string | undefined;
  /** Selects deliveries that are dead or whose last attempt failed. */
  readonly failed?: boolean;
  readonly states?: readonly string[] | undefined;
  readonly channel?: Channel | undefined;
  readonly since?: Date | null;
  readonly after?: string | null;
  readonly limit: number;
  readonly offset?: number;
}

export function listDeliveries(db: Database, environmentId: number, filter: DeliveryFilter) {
  return db
    .selectFrom('notification_deliveries as d')
    .innerJoin('notification_events as e', 'e.event_id', 'd.event_id')
    .leftJoin('tasks as t', (join) =>
      join.on('t.kind', '=', 'delivery').onRef('t.subject_id', '=', 'd.delivery_id'),
    )
    .select(camel('d.public_id', 'd.event_id', 'e.job_id', 'd.subscription_id', 'd.channel', 'd.target'))
    .select(camel('d.state', 'd.attempts', 'd.created_at', 'd.last_attempt_at', 'd.last_took_ms'))
    .select(camel('d.last_status', 'd.last_error', 'd.delivered_at'))
    .select(['e.type as eventType', 't.not_before as nextAt'])
    .where(matching(environmentId, filter))
    .$if(filter.after != null, (page) => page.where('d.public_id', '<', filter.after ?? null))
    .orderBy('d.public_id', 'desc')
    .limit(filter.limit)
    .offset(filter.offset ?? 0)
    .execute();
}

export function countDeliveries(
  db: Database,
  environmentId: number,
  filter: DeliveryFilter,
): Promise<number> {
  return countOf(db)`
    select count(*)
    from notification_deliveries d
    join notification_events e using (event_id)
    where ${matching(environmentId, filter)}`;
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

export function readAttempts(db: Database, publicId: string, limit: number) {
  return db
    .selectFrom('notification_attempts')
    .innerJoin('notification_deliveries as d', 'd.delivery_id', 'notification_attempts.delivery_id')
    .select(camel('attempt', 'begun_at', 'took_ms', 'status', 'error'))
    .where('public_id', '=', publicId)
    .orderBy('attempt', 'desc')
    .limit(limit)
    .execute();
}
