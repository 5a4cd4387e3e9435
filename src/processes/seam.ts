import type pg from 'pg';
import type { Config } from '../base/config.ts';

/** Returns why the service cannot start, or null. The database is migrated. */
export type Preflight = (pool: pg.Pool, config: Config) => Promise<string | null>;
