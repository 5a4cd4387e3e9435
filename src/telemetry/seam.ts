import type pg from 'pg';
import type { Config } from '../base/config.ts';
import type { FoundNeed } from '../domain/need.ts';
import type { Gauges } from './gauges.ts';

/**
 * Figures that `read` gets from the database, and the gauges that show them. `read` is called with
 * the watch pool, at intervals of at least several seconds. `sluice status` shows the fields of the
 * result.
 */
export interface Figures {
  read(watch: pg.Pool): Promise<object>;
  readonly gauges: Gauges<never>;
}

export type NeedOf = FoundNeed & { readonly environmentId: number };

export type Counted = Readonly<Record<'environmentId' | 'count', number>>;

/** A failure. Its fields are shown by `sluice status`. */
export type Failure = object & { readonly endedAt: Date };

/** The figures of a capability in `/metrics`, `sluice status` and the overview. */
export interface FigureSeam {
  /** Figures about unfinished work, for `/metrics` and `sluice status`. */
  readonly backlog?: Figures;
  /** Figures that take longer to read when more data is stored. They are only for `/metrics`. */
  readonly totals?: Figures;
  /**
   * Figures about stored and removed rows, for `/metrics` and for `retention` in `sluice status`.
   */
  readonly retention?: Figures;
  /** Reads the latest SHOWN_FAILURES failures of work other than jobs. */
  failures?(watch: pg.Pool): Promise<readonly Failure[]>;
  /**
   * Returns the problems of an environment that need attention. If `environmentId` is `null`,
   * returns those of all environments.
   */
  needs?(pool: pg.Pool, environmentId: number | null): Promise<readonly NeedOf[]>;
}

/** Returns why the service cannot start, or `null`. Called after the database has been migrated. */
export type Preflight = (pool: pg.Pool, config: Config) => Promise<string | null>;
