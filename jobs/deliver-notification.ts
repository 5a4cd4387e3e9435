import type { Sender } from '../src/notifications/start-sender.ts';
import type { JobHandlers } from '../src/queue/contract.ts';

export function deliverNotificationJob(sender: Sender): JobHandlers['deliver-notification'] {
  return async ({ deliveryId }) => sender.offer(deliveryId);
}
