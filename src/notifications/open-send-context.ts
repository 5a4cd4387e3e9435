import type { System } from '../context.ts';
import { linkFilesForMail } from '../export/file-links.ts';
import { readDeliveryPolicy, type SendContext } from './deliver-notification.ts';
import { openMailTransport } from './mail-transport.ts';

/** What sending works with in a system; close its `mail`. */
export function openSendContext(system: System): SendContext {
  const { config, pool, db, queue, log, files, baseUrl } = system;
  const { linkTtlHours } = config;
  return {
    pool,
    db,
    queue,
    log,
    mail: openMailTransport(config, log),
    deliveryPolicy: readDeliveryPolicy(config),
    linkFiles: (environmentId, jobId) =>
      linkFilesForMail({ db, files, baseUrl, linkTtlHours }, environmentId, jobId),
  };
}
