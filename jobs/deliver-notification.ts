import type { SendContext } from '../src/notifications/context.ts';
import { deliverNotification } from '../src/notifications/deliver-notification.ts';
import type { JobHandlers } from '../src/queue/contract.ts';

export function deliverNotificationJob(
  context: SendContext,
  stopping: AbortSignal,
): JobHandlers['deliver-notification'] {
  return ({ deliveryId }) => deliverNotification(context, deliveryId, stopping);
}
