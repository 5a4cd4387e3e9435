import type { Config } from './config.ts';
import { linkFilesForMail } from './export/file-links.ts';
import { readDeliveryPolicy, type SendContext } from './notifications/deliver-notification.ts';
import { openMailTransport } from './notifications/mail-transport.ts';

/** The parts of a system that sending needs. */
type Parts = Omit<SendContext, 'mail' | 'deliveryPolicy' | 'linkFiles'> &
  Omit<Parameters<typeof linkFilesForMail>[0], 'linkTtlHours'> & { readonly config: Config };

/** Opens the context of sending; close its `mail`. */
export function openSendContext(parts: Parts): SendContext {
  const { config, pool, db, queue, log, files, baseUrl } = parts;
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
