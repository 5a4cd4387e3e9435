import type { System } from '../../context.ts';
import { linkFilesForMail } from '../../export/file-links.ts';
import { readDeliveryPolicy, type SendContext } from './deliver.ts';
import { openMailTransport } from './mail.ts';

/** The caller must close the `mail` of the context. */
export function openSendContext(
  system: Pick<System, 'config' | 'pool' | 'db' | 'queue' | 'log' | 'files' | 'baseUrl'>,
): SendContext {
  const { config, log } = system;
  return {
    ...system,
    mail: openMailTransport(config, log),
    deliveryPolicy: readDeliveryPolicy(config),
    linkFiles: (environmentId, jobId) => linkFilesForMail(system, environmentId, jobId),
  };
}
