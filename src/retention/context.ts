import type pg from 'pg';
import type { Logger } from 'pino';
import type { Config } from '../config.ts';
import type { FileStore } from '../files/file-store.ts';
import type { Database } from '../postgres/database.ts';

export interface RetentionContext {
  readonly pool: pg.Pool;
  readonly db: Database;
  readonly files: FileStore;
  readonly log: Logger;
  readonly config: Pick<Config, 'eventRetentionDays' | 'eventArchive'>;
}
