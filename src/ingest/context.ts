import type pg from 'pg';
import type { Catalogue } from '../catalogue/catalogue.ts';
import type { Database } from '../postgres/database.ts';

/** What single records are written with. Passed, never imported. */
export interface IngestContext {
  readonly pool: pg.Pool;
  readonly db: Database;
  readonly catalogue: Catalogue;
  readonly metrics: IngestMetrics;
}

export type IngestEntity = 'users' | 'companies' | 'events';

export interface IngestMetrics {
  windowCommitted(entity: IngestEntity, records: number, seconds: number): void;
  /** So many more (or fewer) records wait now. */
  windowWaiting(entity: IngestEntity, difference: number): void;
}
