import type pg from 'pg';
import type { Logger } from 'pino';
import type { FileStore } from '../files/file-store.ts';
import type { NotificationBell } from '../notifications/record-end.ts';
import type { Database } from '../postgres/database.ts';

/** Everything the way out works with. Passed, never imported: two systems can live in one process. */
export interface ExportContext {
  readonly pool: pg.Pool;
  readonly db: Database;
  readonly files: FileStore;
  readonly bell: ExportBell;
  /** What links begin with where no request says it, without a slash at the end. */
  readonly baseUrl: string;
  /** How long one attempt at an export may take. */
  readonly exportTimeoutMs: number;
  readonly log: Logger;
}

/** Tells the workers that something is due. Losing a ring costs time only: the ledger is read again and again. */
export interface ExportBell extends NotificationBell {
  ringExport(exportId: number, attempt: number, manner?: RingManner): Promise<void>;
}

/** `again`: also where a job for the same attempt is in the queue, since whoever took that seems to have died with it. */
export type RingManner = 'once' | 'again';
