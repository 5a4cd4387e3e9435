import { sql } from 'kysely';
import { EMAIL_LEASE_MS, MAX_SENDS_PER_SUBSCRIPTION, WEBHOOK_LEASE_MS } from '../../domain/limits.ts';
import type { Channel, DeliveryState, EventType } from '../../domain/notification.ts';
import type { Database } from '../database.ts';
import { isFree, isLapsed, leaseFor } from '../ledger/lease.ts';

/** A delivery that somebody should be at. */
export interface DueDelivery {
  readonly deliveryId: number;
  readonly attempt: number;
}

/** One attempt at a delivery; the attempt number fences what it notes. */
export interface DeliveryClaim {
  readonly deliveryId: number;
  readonly attempt: number;
  /** After this one. */
  readonly attemptsLeft: number;
  /** From 1; begins anew with a replay. */
  readonly turn: number;
  readonly subscriptionId: number | null;
  readonly channel: Channel;
  readonly target: string;
  readonly event: {
    readonly id: string;
    readonly environmentId: number;
    readonly type: EventType;
    readonly jobId: string | null;
    readonly body: string;
  };
  /** By which a webhook is signed: the current one and, while receivers change over, the one before. */
  readonly secrets: readonly string[];
  /** Null unless nothing is to be sent there any more. */
  readonly closed: string | null;
}

/** By the alias of the table. */
const leaseMs = (alias: 'd' | 'o') =>
  sql<number>`case ${sql.ref(`${alias}.channel`)} when 'webhook' then ${WEBHOOK_LEASE_MS}::integer else ${EMAIL_LEASE_MS} end`;
/** Nobody is sending the delivery `d`. */
const isNotSent = isFree('d.lease_until', leaseMs('d'));

/**
 * Takes a delivery that is due, for as long as sending may take; should we die, it is due again then. Null if there is
 * nothing to do, or if so many are under way to the same receiver that one which hangs would hold up the others.
 * `attempts`: how many a delivery has in all.
 */
export async function claimDelivery(
  db: Database,
  deliveryId: number,
  attempts: number,
): Promise<DeliveryClaim | null> {
  const attempt = await db.transaction().execute(async (transaction) => {
    // Whoever takes another one to the same receiver waits here, and then counts this one.
    await sql`
      select
      from notification_deliveries d
      join notification_subscriptions s using (subscription_id)
      where d.delivery_id = ${deliveryId}
      for no key update of s`.execute(transaction);
    return takeDelivery(transaction, deliveryId);
  });
  return attempt === null ? null : readClaim(db, deliveryId, attempt, attempts);
}

async function takeDelivery(db: Database, deliveryId: number): Promise<number | null> {
  const { rows } = await sql<{ attempt: number }>`
    update notification_deliveries d
    set
      attempt = d.attempt + 1,
      attempts_left = d.attempts_left - 1,
      lease_until = ${leaseFor(leaseMs('d'))},
      last_attempt_at = now()
    where d.delivery_id = ${deliveryId}
      and d.state = 'pending'
      and d.attempts_left > 0
      and d.next_at <= now()
      and ${isNotSent}
      and (
        select count(*)
        from notification_deliveries o
        where o.subscription_id = d.subscription_id
          and o.state = 'pending'
          and not ${isLapsed('o.lease_until', leaseMs('o'))}
      ) < ${MAX_SENDS_PER_SUBSCRIPTION}
    returning d.attempt`.execute(db);
  return rows[0]?.attempt ?? null;
}

async function readClaim(
  db: Database,
  deliveryId: number,
  attempt: number,
  attempts: number,
): Promise<DeliveryClaim> {
  const row = await db
    .selectFrom('notification_deliveries as d')
    .innerJoin('notification_events as e', 'e.event_id', 'd.event_id')
    .leftJoin('notification_subscriptions as s', 's.subscription_id', 'd.subscription_id')
    .select([
      'd.attempts_left',
      'd.subscription_id',
      'd.channel',
      'd.target',
      'e.event_id',
      'e.environment_id',
      'e.type',
      'e.job_id',
      'e.body',
      's.secret',
      sql<string | null>`case when s.previous_secret_until > now() then s.previous_secret end`.as('previous'),
      sql<string | null>`case
        when s.removed_at is not null then 'the subscription was removed'
        when s.disabled_at is not null then 'the subscription is disabled: ' || s.disabled_reason
      end`.as('closed'),
    ])
    .where('d.delivery_id', '=', deliveryId)
    .executeTakeFirstOrThrow();
  return {
    deliveryId,
    attempt,
    attemptsLeft: row.attempts_left,
    turn: Math.max(1, attempts - row.attempts_left),
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
    secrets: [row.secret, row.previous].filter((secret) => secret !== null),
    closed: row.closed,
  };
}

/** How an attempt went, as it is shown. */
export interface AttemptReport {
  /** Of the answer; null if there was none, or it is no HTTP. */
  readonly status: number | null;
  /** One line; null if it went well. */
  readonly error: string | null;
  readonly tookMs: number;
}

/** It has arrived. False: this attempt has lost its lease and another has it. */
export async function markDelivered(
  db: Database,
  claim: DeliveryClaim,
  report: AttemptReport,
): Promise<boolean> {
  return endAttempt(db, claim, report, { state: 'delivered', delivered_at: sql<Date>`now()` });
}

/** To be tried again after `pauseMs`. */
export async function postponeDelivery(
  db: Database,
  claim: DeliveryClaim,
  report: AttemptReport,
  pauseMs: number,
): Promise<boolean> {
  return endAttempt(db, claim, report, { next_at: sql<Date>`now() + ${pauseMs} * interval '1 millisecond'` });
}

/** Not to be tried again, unless somebody asks for it. */
export async function markDead(db: Database, claim: DeliveryClaim, report: AttemptReport): Promise<boolean> {
  return endAttempt(db, claim, report, { state: 'dead' });
}

/** Gives it back; it is due again at once, and no attempt is spent. */
export async function releaseDelivery(db: Database, claim: DeliveryClaim): Promise<void> {
  await own(db, claim)
    .set((eb) => ({ lease_until: null, attempts_left: eb('attempts_left', '+', 1) }))
    .execute();
}

async function endAttempt(
  db: Database,
  claim: DeliveryClaim,
  { status, error, tookMs }: AttemptReport,
  values: object,
): Promise<boolean> {
  const ended = await own(db, claim)
    .set({ ...values, lease_until: null, last_status: status, last_error: error, last_took_ms: tookMs })
    .returning('delivery_id')
    .executeTakeFirst();
  return ended !== undefined;
}

function own(db: Database, claim: DeliveryClaim) {
  return db
    .updateTable('notification_deliveries')
    .where('delivery_id', '=', claim.deliveryId)
    .where('attempt', '=', claim.attempt)
    .where('state', '=', 'pending')
    .where('lease_until', 'is not', null);
}

/** A delivery whose turn it is. */
export interface NextDelivery {
  readonly deliveryId: number;
  readonly environmentId: number;
}

/**
 * Up to `limit` deliveries that are due, but for `excluded`. Environments take turns as with all tasks (`findNextTasks`), and
 * within an environment its receivers, so that none crowds out the others; a receiver has as many as may be under way to one.
 */
export async function findNextDeliveries(
  db: Database,
  served: readonly number[],
  limit: number,
  excluded: readonly number[],
): Promise<NextDelivery[]> {
  const { rows } = await sql<NextDelivery>`
    with open as (
      select d.delivery_id, d.next_at, d.subscription_id, d.target, e.environment_id,
        not ${isNotSent} as is_under_way
      from notification_deliveries d
      join notification_events e using (event_id)
      where d.state = 'pending'
        and (not ${isNotSent} or (d.next_at <= now() and d.attempts_left > 0))
    ),
    by_receiver as (
      select *,
        row_number() over (
          partition by environment_id, subscription_id, case when subscription_id is null then target end
          order by is_under_way desc, next_at, delivery_id
        ) as place
      from open
    ),
    by_environment as (
      select *,
        row_number() over (
          partition by environment_id
          order by is_under_way desc, place, next_at, delivery_id
        ) as turn
      from by_receiver
      where is_under_way or subscription_id is null or place <= ${MAX_SENDS_PER_SUBSCRIPTION}
    )
    select delivery_id as "deliveryId", environment_id as "environmentId"
    from by_environment
    where not is_under_way and delivery_id <> all (${[...excluded]}::bigint[])
    order by turn, array_position(${[...served]}::integer[], environment_id) nulls first, next_at, delivery_id
    limit ${limit}`.execute(db);
  return rows;
}

/** Those whose last attempt was lost with its worker: nobody would ever be at them again. */
export async function giveUpLost(db: Database): Promise<number> {
  const { numAffectedRows } = await sql`
    update notification_deliveries d
    set state = 'dead', lease_until = null, last_error = 'the worker that sent it was lost'
    where d.state = 'pending' and d.attempts_left = 0 and ${isNotSent}`.execute(db);
  return Number(numAffectedRows ?? 0);
}

/** Nothing more is sent to a receiver: what waits for it is given up, what is under way ends by itself. */
export async function killDeliveries(db: Database, subscriptionId: number, reason: string): Promise<void> {
  await db
    .updateTable('notification_deliveries')
    .set({ state: 'dead', last_error: reason })
    .where('subscription_id', '=', subscriptionId)
    .where('state', '=', 'pending')
    .where('lease_until', 'is', null)
    .execute();
}

/** One event for one receiver, and how far it is. */
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

/** Deliveries that one replay makes due at most. */
const mostReplayed = 10_000;

/** What is to be sent once more: one delivery, or those since then that were given up. */
export type Replay = { readonly deliveryId: number } | { readonly failedSince: Date };

/**
 * Makes deliveries due now, under the ids that they had, with as many attempts as new ones. Leaves out those that are under
 * way, and those of a subscription that is removed or disabled.
 */
export async function requeueDeliveries(
  db: Database,
  environmentId: number,
  replay: Replay,
  attempts: number,
): Promise<DueDelivery[]> {
  const chosen =
    'deliveryId' in replay
      ? sql`d.delivery_id = ${replay.deliveryId}`
      : sql`d.state = 'dead' and d.created_at >= ${replay.failedSince}`;
  const { rows } = await sql<DueDelivery>`
    with chosen as (
      select d.delivery_id
      from notification_deliveries d
      join notification_events e on e.event_id = d.event_id
      left join notification_subscriptions s on s.subscription_id = d.subscription_id
      where e.environment_id = ${environmentId}
        and ${chosen}
        and ${isNotSent}
        and s.removed_at is null
        and s.disabled_at is null
      order by d.delivery_id
      limit ${mostReplayed}
    )
    update notification_deliveries d
    set
      state = 'pending',
      next_at = now(),
      lease_until = null,
      attempts_left = ${attempts},
      delivered_at = null
    from chosen
    where d.delivery_id = chosen.delivery_id and ${isNotSent}
    returning d.delivery_id as "deliveryId", d.attempt`.execute(db);
  return rows;
}
