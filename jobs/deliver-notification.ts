import type { Sender } from '../src/notifications/start-sender.ts';
import type { JobHandlers } from '../src/queue/contract.ts';

/** Ends at once: the sender works beside the jobs, and finds what is next by itself. */
export function deliverNotificationJob(sender: Sender): JobHandlers['deliver-notification'] {
  return async () => sender.wake();
}
