import { NOTIFICATIONS_AT_A_TIME } from '../domain/limits.ts';
import type { SendContext } from './context.ts';
import { deliverNotification } from './deliver-notification.ts';

/** Sends beside the jobs of a worker: a receiver that hangs takes none of their places. */
export interface Sender {
  /** This one may be due. It is forgotten if very many wait: what is due stands in the ledger. */
  offer(deliveryId: number): void;
  /** Takes no more, and waits for what it has, but no longer than `graceMs`: the rest is given back. */
  stop(graceMs: number): Promise<void>;
}

const mostWaiting = 1_000;

export function startSender(context: SendContext): Sender {
  const leaving = new AbortController();
  const waiting = new Set<number>();
  const underWay = new Set<Promise<void>>();
  let stopped = false;
  const fill = (): void => {
    for (const deliveryId of waiting) {
      if (underWay.size >= NOTIFICATIONS_AT_A_TIME) return;
      waiting.delete(deliveryId);
      const sending: Promise<void> = send(context, deliveryId, leaving.signal).then(() => {
        underWay.delete(sending);
        fill();
      });
      underWay.add(sending);
    }
  };
  return {
    offer(deliveryId) {
      if (stopped || waiting.size >= mostWaiting) return;
      waiting.add(deliveryId);
      fill();
    },
    async stop(graceMs) {
      stopped = true;
      const patience = setTimeout(() => leaving.abort(), graceMs);
      while (underWay.size > 0) await Promise.all(underWay);
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
