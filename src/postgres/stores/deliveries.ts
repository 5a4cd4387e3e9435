import { sql } from 'kysely';
import { uuidv7 } from 'uuidv7';
import type { Channel, DeliveryState, EventType } from '../../domain/notification.ts';
import type { DueTask } from '../../domain/task.ts';
import type { Database } from '../database.ts';

/*
 * Deliveries: one event for one receiver, pending → delivered | dead; a replay makes it pending again. A pending one has a task of
 * the kind `delivery` (stores/tasks.ts), whose group is the subscription: it says when it is due, and who sends it.
 */

/** Somebody to whom an event is sent. */
export interface Recipient {
  /** Null: the job itself names the address. */
  readonly subscriptionId: string | null;
  readonly channel: Channel;
  readonly target: string;
}

/** A mail address that comes twice gets one delivery, the first. Returns their `deliveryId`s. */
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

/** Makes the deliveries due now; those of which a worker has the task are left to it. */
export async function queueDeliveries(db: Database, deliveryIds: readonly number[]): Promise<DueTask[]> {
  const { rows } = await sql<DueTask>`
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
    returning t.task_id as "taskId", t.kind, t.attempt`.execute(db);
  return rows;
}

/** What an attempt at a delivery needs. */
export interface DeliveryAttempt {
  readonly deliveryId: number;
  /** The id that people see. */
  readonly publicId: string;
  readonly subscriptionId: string | null;
  readonly channel: Channel;
  readonly target: string;
  readonly event: {
    readonly id: string;
    readonly environmentId: number;
    readonly type: EventType;
    readonly jobId: string | null;
    readonly body: string;
  };
  /** By which a webhook is signed: the current one and, while receivers change over, the previous one. */
  readonly secrets: readonly string[];
  /** Null unless nothing is to be sent there any more. */
  readonly closed: string | null;
}

/** Counts an attempt; null if the delivery is not pending any more. */
export async function beginAttempt(db: Database, deliveryId: number): Promise<DeliveryAttempt | null> {
  const row = await db
    .updateTable('notification_deliveries as d')
    .from('notification_events as e')
    .set((eb) => ({ attempts: eb('d.attempts', '+', 1), last_attempt_at: sql`now()` }))
    .whereRef('e.event_id', '=', 'd.event_id')
    .where('d.delivery_id', '=', deliveryId)
    .where('d.state', '=', 'pending')
    .returning([
      'd.public_id',
      'd.subscription_id',
      'd.channel',
      'd.target',
      'e.event_id',
      'e.environment_id',
      'e.type',
      'e.job_id',
      'e.body',
    ])
    .executeTakeFirst();
  if (row === undefined) return null;
  const { secrets, closed } = await readReceiver(db, row.subscription_id);
  return {
    deliveryId,
    publicId: row.public_id,
    subscriptionId: row.subscription_id,
    channel: row.channel as Channel,
    target: row.target,
    event: {
      id: row.event_id,
      environmentId: row.environment_id,
      type: row.type as EventType,
      jobId: row.job_id,
      body: row.body,
    },
    secrets,
    closed,
  };
}

async function readReceiver(
  db: Database,
  subscriptionId: string | null,
): Promise<Pick<DeliveryAttempt, 'secrets' | 'closed'>> {
  const row = await db
    .selectFrom('notification_subscriptions')
    .select([
      'secret',
      sql<string | null>`case when previous_secret_until > now() then previous_secret end`.as('previous'),
      sql<string | null>`case
        when removed_at is not null then 'the subscription was removed'
        when disabled_at is not null then 'the subscription is disabled: ' || disabled_reason
      end`.as('closed'),
    ])
    .where('subscription_id', '=', subscriptionId)
    .executeTakeFirst();
  const secrets = [row?.secret ?? null, row?.previous ?? null].filter((secret) => secret !== null);
  return { secrets, closed: row?.closed ?? null };
}

/** How an attempt went, as it is shown. */
export interface AttemptReport {
  /** Of the answer; null if there was none, or it is no HTTP. */
  readonly status: number | null;
  /** One line; null if it went well. */
  readonly error: string | null;
  readonly tookMs: number;
}

/** Writes how an attempt went, in the transaction that ends or releases its task. `pending`: it will be tried again. */
export async function endAttempt(
  db: Database,
  deliveryId: number,
  state: DeliveryState,
  { status, error, tookMs }: AttemptReport,
): Promise<void> {
  await db
    .updateTable('notification_deliveries')
    .set({
      state,
      last_status: status,
      last_error: error,
      last_took_ms: tookMs,
      ...(state === 'delivered' && { delivered_at: sql<Date>`now()` }),
    })
    .where('delivery_id', '=', deliveryId)
    .execute();
  await sql`
    insert into notification_attempts (delivery_id, attempt, begun_at, took_ms, status, error)
    select delivery_id, attempts, coalesce(last_attempt_at, now()), ${tookMs}, ${status}::int, ${error}::text
    from notification_deliveries
    where delivery_id = ${deliveryId}
    on conflict do nothing`.execute(db);
}

/** Gives a delivery up, whatever becomes of its task. */
export async function killDelivery(db: Database, deliveryId: number, reason: string): Promise<void> {
  await db.transaction().execute(async (transaction) => {
    await transaction
      .updateTable('notification_deliveries')
      .set({ state: 'dead', last_error: reason })
      .where('delivery_id', '=', deliveryId)
      .where('state', '=', 'pending')
      .execute();
    await transaction
      .deleteFrom('tasks')
      .where('kind', '=', 'delivery')
      .where('subject_id', '=', deliveryId)
      .execute();
  });
}

/** Nothing more is sent to a receiver: what waits for it is given up, what is under way ends by itself. */
export async function killDeliveries(db: Database, subscriptionId: string, reason: string): Promise<void> {
  await sql`
    with dropped as (
      delete from tasks
      where kind = 'delivery' and group_id = ${subscriptionId} and lease_until is null
      returning subject_id
    )
    update notification_deliveries d
    set state = 'dead', last_error = ${reason}
    from dropped
    where d.delivery_id = dropped.subject_id and d.state = 'pending'`.execute(db);
}

/** Those that a process sent without a task, and never ended: a test whose process was killed. */
export async function killLostDeliveries(db: Database): Promise<number> {
  const { numAffectedRows } = await sql`
    update notification_deliveries d
    set state = 'dead', last_error = 'the process that sent it was lost'
    where d.state = 'pending'
      and d.created_at < now() - interval '1 minute'
      and not exists (select 1 from tasks t where t.kind = 'delivery' and t.subject_id = d.delivery_id)`.execute(
    db,
  );
  return Number(numAffectedRows ?? 0);
}

/** Deliveries that one replay makes due at most. */
const mostReplayed = 10_000;

/** What is to be sent once more: one delivery, or those since then that were given up. */
export type Replay = { readonly publicId: string } | { readonly failedSince: Date };

/**
 * Makes deliveries pending again and returns both ids of each. Leaves out those that are under way, and those of a subscription
 * that is removed or disabled.
 */
export async function reopenDeliveries(
  db: Database,
  environmentId: number,
  replay: Replay,
): Promise<{ readonly deliveryId: number; readonly publicId: string }[]> {
  const chosen =
    'publicId' in replay
      ? sql`d.public_id = ${replay.publicId}`
      : sql`d.state = 'dead' and d.created_at >= ${replay.failedSince}`;
  const { rows } = await sql<{ deliveryId: number; publicId: string }>`
    with chosen as (
      select d.delivery_id
      from notification_deliveries d
      join notification_events e on e.event_id = d.event_id
      left join notification_subscriptions s on s.subscription_id = d.subscription_id
      where e.environment_id = ${environmentId}
        and ${chosen}
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
    returning d.delivery_id as "deliveryId", d.public_id as "publicId"`.execute(db);
  return rows;
}
