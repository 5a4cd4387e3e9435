import type { System } from '../src/context.ts';
import { deliverNotice } from '../src/delivery/deliver-notice.ts';
import { createPost } from '../src/delivery/post.ts';
import type { JobHandlers } from '../src/queue/contract.ts';

export function notifyExportJob(system: System): JobHandlers['notify-export'] {
  const { config, db, files, log } = system;
  const post = createPost(config, log);
  const context = { db, files, log, post, ...readLinks(config) };
  return ({ exportId }) => deliverNotice(context, exportId);
}

/** There is no request whose host could be taken, nor should a message trust one. */
function readLinks({ publicUrl, host, port, linkTtlHours }: System['config']) {
  return { baseUrl: publicUrl ?? `http://${host}:${port}`, linkTtlHours };
}
