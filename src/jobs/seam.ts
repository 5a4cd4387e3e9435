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

/** Keeps the events that outlive their retention. */
export interface ArchiveSeam {
  /** Its name in sentences. */
  readonly label: string;
  /** Tells whether events that go are to be kept. */
  isOn(config: Config): boolean;
  /** Is called before events are removed, by one process at a time. */
  tend(context: RetentionContext): Promise<void>;
  /** Takes what a retired table holds. The table is dropped afterwards. */
  archive(context: RetentionContext, retirement: Retirement): Promise<void>;
  /** Removes files that nothing names any more; returns how many. */
  sweep(context: Pick<RetentionContext, 'db' | 'files'>): Promise<number>;
}
