import { sql } from 'kysely';
import { inputError } from '../domain/errors.ts';
import type { Database } from '../postgres/database.ts';
import { type DueDelivery, isNotSent } from '../postgres/ledger/notification-deliveries.ts';
import { persistence } from './delivery-policy.ts';

/** Deliveries that are replayed at once at most. */
const mostAtOnce = 10_000;

/** What is to be sent once more: one delivery, or those since then that were given up. */
export type Replay = { readonly deliveryId: number } | { readonly failedSince: Date };

/**
 * Makes deliveries due now, with as many attempts as a new one, under the id that they had; ring for what it gives. One
 * that somebody is at is left to them. Throws `InputError` `not_found`: the environment has no such delivery, or its
 * subscription sends no more.
 */
export async function replayDeliveries(
  db: Database,
  environmentId: number,
  replay: Replay,
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
      limit ${mostAtOnce}
    )
    update notification_deliveries d
    set
      state = 'pending',
      next_at = now(),
      lease_until = null,
      attempts_left = ${persistence.attempts},
      delivered_at = null
    from chosen
    where d.delivery_id = chosen.delivery_id and ${isNotSent}
    returning d.delivery_id as "deliveryId", d.attempt`.execute(db);
  if (rows.length === 0 && 'deliveryId' in replay) {
    const message = 'there is no such delivery, it is being sent now, or its subscription sends no more';
    throw inputError('not_found', message, `delivery: ${replay.deliveryId}`);
  }
  return rows;
}
