import type pg from 'pg';
import type { Logger } from 'pino';
import type { Config } from '../base/config.ts';
import type { FileStore } from '../files/file-store.ts';
import type { Database } from '../postgres/database.ts';
import type { Retirement } from '../postgres/retirements.ts';

export interface RetentionContext {
  readonly pool: pg.Pool;
  readonly db: Database;
  readonly files: FileStore;
  readonly log: Logger;
  readonly config: Config;
  readonly archive: ArchiveSeam | null;
}

declare module '../context.ts' {
  interface System {
    readonly archive: ArchiveSeam | null;
  }
}

export interface ArchiveSeam {
  readonly label: string;
  isOn(config: Config): boolean;
  /** Called before events are removed, by only one process at a time. */
  maintain(context: RetentionContext): Promise<void>;
  /** Afterwards, the table is dropped. */
  archive(context: RetentionContext, retirement: Retirement): Promise<void>;
  /** Removes unreferenced files. Returns their number. */
  sweep(context: Pick<RetentionContext, 'db' | 'files'>): Promise<number>;
}
