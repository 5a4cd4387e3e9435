import type { System } from '../src/context.ts';
import { deliverNotice } from '../src/delivery/deliver-notice.ts';
import { createPost } from '../src/delivery/post.ts';
import type { JobHandlers } from '../src/queue/contract.ts';

export function notifyExportJob(system: System): JobHandlers['notify-export'] {
  const { config, db, files, log } = system;
  const post = createPost(config, log);
  const context = { db, files, log, post, baseUrl: system.baseUrl, linkTtlHours: config.linkTtlHours };
  return ({ exportId }) => deliverNotice(context, exportId);
}
