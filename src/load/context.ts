import type pg from 'pg';
import type { Logger } from 'pino';
import type { FileStore } from '../files/file-store.ts';
import type { NotificationBell } from '../notifications/record-end.ts';
import type { Database } from '../postgres/database.ts';
import type { KnownProperties } from '../properties/known-properties.ts';
import type { Experience } from './experience.ts';

/** Everything the load route works with. Passed, never imported: two systems can live in one process. */
export interface LoadContext {
  readonly pool: pg.Pool;
  readonly db: Database;
  readonly files: FileStore;
  readonly knownProperties: KnownProperties;
  readonly bell: Bell;
  /** What links begin with where no request says it, without a slash at the end. */
  readonly baseUrl: string;
  readonly log: Logger;
  readonly experience: Experience;
}

/** Tells the workers that something is due. Losing a ring costs time only: the ledger is read again and again. */
export interface Bell extends NotificationBell {
  ringChunks(
    loadId: number,
    chunks: readonly { chunkNo: number; attempt: number }[],
    manner?: RingManner,
  ): Promise<void>;
  ringFinish(loadId: number, attempt: number, manner?: RingManner): Promise<void>;
  /** A deletion whose turn it is: it stands in the lane of the loads. */
  ringDeletion(deletionId: number, attempt: number, manner?: RingManner): Promise<void>;
}

/**
 * `once`: what was rung for before and not taken yet is not rung for twice. `again`: it is, since whoever took the ring
 * seems to have died with it; at most once in some seconds.
 */
export type RingManner = 'once' | 'again';
