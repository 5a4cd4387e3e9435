import { NOTIFICATIONS_AT_A_TIME } from '../domain/limits.ts';
import { findNextDeliveries } from '../postgres/stores/deliveries.ts';
import { Turns } from '../tasks/turns.ts';
import { deliverNotification, type SendContext } from './deliver-notification.ts';

/** Sends beside the jobs of a worker: a receiver that hangs takes none of their places. */
export interface Sender {
  /** Something may be due; what, and whose turn it is, stands in the ledger. */
  wake(): void;
  /** Takes no more, and waits for what it has, but no longer than `graceMs`: the rest is given back. */
  stop(graceMs: number): Promise<void>;
}

/** Found at once. Few: who comes next must not wait for many of those who came before. */
const foundAtOnce = 2 * NOTIFICATIONS_AT_A_TIME;

export function startSender(context: SendContext): Sender {
  const leaving = new AbortController();
  const turns = new Turns();
  const underWay = new Map<number, Promise<void>>();
  let waiting: readonly number[] = [];
  let looking: Promise<void> | null = null;
  let lookAgain = false;
  let stopped = false;

  const fill = (): void => {
    while (!stopped && underWay.size < NOTIFICATIONS_AT_A_TIME) {
      const [next, ...others] = waiting;
      if (next === undefined) {
        look();
        return;
      }
      waiting = others;
      const sending = send(context, next, leaving.signal).then(() => {
        underWay.delete(next);
        fill();
      });
      underWay.set(next, sending);
    }
  };
  const look = (): void => {
    lookAgain = looking !== null;
    looking ??= find().finally(() => {
      looking = null;
      if (waiting.length > 0) fill();
      else if (lookAgain) look();
    });
  };
  const find = async (): Promise<void> => {
    try {
      const found = await findNextDeliveries(context.db, turns.served, foundAtOnce, [...underWay.keys()]);
      for (const { environmentId } of found) turns.took(environmentId);
      waiting = found.map(({ deliveryId }) => deliveryId);
    } catch (error) {
      context.log.warn({ err: error }, 'notifications are left for later');
    }
  };
  return {
    wake: fill,
    async stop(graceMs) {
      stopped = true;
      const patience = setTimeout(() => leaving.abort(), graceMs);
      await looking;
      while (underWay.size > 0) await Promise.all(underWay.values());
      clearTimeout(patience);
    },
  };
}

/** What could not be noted is due again when its lease has run out. */
async function send(context: SendContext, deliveryId: number, stopping: AbortSignal): Promise<void> {
  try {
    await deliverNotification(context, deliveryId, stopping);
  } catch (error) {
    context.log.warn({ err: error, delivery_id: deliveryId }, 'a notification is left for later');
  }
}
