import type pg from 'pg';
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import { createPost } from '../delivery/post.ts';
import type { Database } from '../postgres/database.ts';
import type { SendContext } from './context.ts';
import { readDeliveryPolicy } from './delivery-policy.ts';

/** What sending works with in a system that is not a test's; close its `post`. */
export function openSender(system: {
  readonly config: Config;
  readonly pool: pg.Pool;
  readonly db: Database;
  readonly log: Logger;
}): SendContext {
  const { config, pool, db, log } = system;
  return { pool, db, log, post: createPost(config, log), policy: readDeliveryPolicy(config) };
}
