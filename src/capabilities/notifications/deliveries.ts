import { inputError } from '../../base/errors.ts';
import { render } from '../../http/render.ts';
import { inTransaction } from '../../postgres/database.ts';
import { notifyQueue, type TaskContext } from '../../tasks/task-kind.ts';
import type { TestDelivery } from './api.ts';
import { deliverOnce, type SendContext } from './deliver.ts';
import {
  beginAttempt,
  type Delivery,
  insertDeliveries,
  queueDeliveries,
  type Replay,
  reopenDeliveries,
} from './delivery-store.ts';
import { writeEvent } from './record.ts';
import type { Subscription } from './subscription-store.ts';
import { requireSubscription, shownTarget } from './subscriptions.ts';

/**
 * Replays deliveries, and returns their ids. The deliveries are due immediately, with the full
 * number of attempts.
 * @throws InputError `not_found` for an unknown delivery or an ended subscription
 */
export async function replayDeliveries(
  context: Pick<TaskContext, 'db' | 'queue' | 'log'>,
  environmentId: number,
  replay: Replay,
): Promise<readonly string[]> {
  const { publicIds, tasks } = await context.db.transaction().execute(async (transaction) => {
    const reopened = await reopenDeliveries(transaction, environmentId, replay);
    if (reopened.length === 0 && 'publicId' in replay) {
      const message = 'There is no such delivery, it is being sent now, or its subscription has ended';
      throw inputError('not_found', message, `delivery: ${replay.publicId}`);
    }
    const deliveryIds = reopened.map(({ deliveryId }) => deliveryId);
    const publicIds = reopened.map(({ publicId }) => publicId);
    return { publicIds, tasks: await queueDeliveries(transaction, deliveryIds) };
  });
  await notifyQueue(context, tasks);
  return publicIds;
}

/** @throws InputError `not_found`, or `invalid_field` if the subscription is disabled */
export async function sendTest(
  context: SendContext,
  environmentId: number,
  subscriptionId: string,
): Promise<TestDelivery> {
  // The ping gets no task, so no worker sends it a second time.
  const ping = await inTransaction(context.pool, async ({ db }) => {
    const { channel, target, disabledReason } = await requireSubscription(db, environmentId, subscriptionId);
    if (disabledReason !== null)
      throw inputError('invalid_field', `The subscription is disabled: ${disabledReason}`);
    const eventId = await writeEvent(db, { environmentId, type: 'ping', jobId: null }, {});
    const [deliveryId = 0] = await insertDeliveries(db, eventId, [{ subscriptionId, channel, target }]);
    const attempt = await beginAttempt(db, deliveryId);
    if (attempt === null) throw new Error('a delivery was expected');
    return attempt;
  });
  const { outcome, status, error, tookMs } = await deliverOnce(context, ping);
  return { delivery_id: ping.publicId, delivered: outcome === 'delivered', status, error, took_ms: tookMs };
}

export function renderDelivery({ publicId, ...delivery }: Delivery) {
  return { delivery_id: publicId, ...render(delivery), target: shownTarget(delivery) };
}

export function renderSubscription({
  subscriptionId: id,
  outcomes: on,
  kinds: types,
  ...rest
}: Subscription) {
  return { id, on, types, ...render(rest), target: shownTarget(rest) };
}
