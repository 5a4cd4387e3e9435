import type pg from 'pg';
import type { Config } from '../base/config.ts';
import type { FoundNeed } from '../domain/need.ts';
import type { Gauges } from './gauges.ts';

/**
 * Figures of the database and the gauges that show them. `read` runs at most every few seconds, on
 * a watching connection. Its answer has a field per figure, which `sluice status` names.
 */
export interface Figures {
  read(watch: pg.Pool): Promise<object>;
  readonly gauges: Gauges<never>;
}

export type NeedOf = FoundNeed & { readonly environmentId: number };

/** A count for an environment. */
export type Counted = Readonly<Record<'environmentId' | 'count', number>>;

/** A failure, with the fields that `sluice status` shows. */
export type Failure = object & { readonly endedAt: Date };

/** The figures of a capability in `/metrics`, `sluice status` and the overview. */
export interface FigureSeam {
  /** Unfinished work, also in `sluice status`. */
  readonly backlog?: Figures;
  /** Figures whose cost grows with the stored data. Only `/metrics` shows them. */
  readonly totals?: Figures;
  /** Stored and removed rows, also in `sluice status` as `retention`. */
  readonly retention?: Figures;
  /** Reads the latest SHOWN_FAILURES failures, without failures of jobs. */
  failures?(watch: pg.Pool): Promise<readonly Failure[]>;
  /** Finds needs for a person, in one environment or in all. */
  needs?(pool: pg.Pool, environmentId: number | null): Promise<readonly NeedOf[]>;
}

/** Returns why the service cannot start, or `null`. The database has been migrated. */
export type Preflight = (pool: pg.Pool, config: Config) => Promise<string | null>;
