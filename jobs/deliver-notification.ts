import type { System } from '../src/context.ts';
import { linkFilesForMail } from '../src/export/file-links.ts';
import type { SendContext } from '../src/notifications/deliver-notification.ts';
import { readDeliveryPolicy } from '../src/notifications/delivery-policy.ts';
import { openMailTransport } from '../src/notifications/mail-transport.ts';
import type { Sender } from '../src/notifications/start-sender.ts';
import type { JobHandlers } from '../src/queue/contract.ts';

/** Ends at once: the sender works beside the jobs, and finds what is next by itself. */
export function deliverNotificationJob(sender: Sender): JobHandlers['deliver-notification'] {
  return async () => sender.wake();
}

/** What sending works with in a system; close its `mail`. */
export function openSendContext({ config, pool, db, log, files, baseUrl }: System): SendContext {
  const { linkTtlHours } = config;
  return {
    pool,
    db,
    log,
    mail: openMailTransport(config, log),
    policy: readDeliveryPolicy(config),
    linkFiles: (environmentId, jobId) =>
      linkFilesForMail({ db, files, baseUrl, linkTtlHours }, environmentId, jobId),
  };
}
