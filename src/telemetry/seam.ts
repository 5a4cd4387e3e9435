import type pg from 'pg';
import type { Config } from '../base/config.ts';
import type { FoundNeed } from '../domain/need.ts';
import type { Gauges } from './gauges.ts';

/**
 * Figures that are read with the watch pool, at intervals of at least several seconds. `sluice
 * status` shows the fields of the result.
 */
export interface Figures {
  read(watch: pg.Pool): Promise<object>;
  readonly gauges: Gauges<never>;
}

export type NeedOf = FoundNeed & { readonly environmentId: number };

export type Counted = Readonly<Record<'environmentId' | 'count', number>>;

export type Failure = object & { readonly endedAt: Date };

/** Figures of a capability in `/metrics`, `sluice status` and the overview. */
export interface FigureSeam {
  /** Unfinished work, for `/metrics` and `sluice status`. */
  readonly backlog?: Figures;
  /** Figures that take longer to read with more stored data. Only for `/metrics`. */
  readonly totals?: Figures;
  /** Stored and removed rows, for `/metrics` and `retention` in `sluice status`. */
  readonly retention?: Figures;
  /** Latest SHOWN_FAILURES failures of work other than jobs. */
  failures?(watch: pg.Pool): Promise<readonly Failure[]>;
  /** Needs of an environment, or of all if `environmentId` is `null`. */
  needs?(pool: pg.Pool, environmentId: number | null): Promise<readonly NeedOf[]>;
}

/** Returns why the service cannot start, or `null`. Called after migrations. */
export type Preflight = (pool: pg.Pool, config: Config) => Promise<string | null>;
