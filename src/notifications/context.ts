import type pg from 'pg';
import type { Logger } from 'pino';
import type { Post } from '../delivery/post.ts';
import type { Database } from '../postgres/database.ts';
import type { DueDelivery } from '../postgres/ledger/notification-deliveries.ts';
import type { DeliveryPolicy } from './delivery-policy.ts';

/** Tells the workers that somebody is to be told. Losing a ring costs time only: the ledger is read again and again. */
export interface NotificationBell {
  ringDeliveries(due: readonly DueDelivery[]): Promise<void>;
}

/** What every end of a job needs in order to announce it. */
export interface AnnounceContext {
  /** What links begin with, without a slash at the end: there is no request whose host could be taken. */
  readonly baseUrl: string;
  readonly bell: NotificationBell;
  readonly log: Logger;
}

/** What sending works with. */
export interface SendContext {
  readonly pool: pg.Pool;
  readonly db: Database;
  readonly log: Logger;
  readonly post: Post;
  readonly policy: DeliveryPolicy;
}
