import type pg from 'pg';
import type { Config } from '../base/config.ts';
import type { FoundNeed } from '../domain/need.ts';
import type { Gauges } from './gauges.ts';

/**
 * Figures of the database and the gauges that show them. `read` runs at most every few seconds,
 * on a connection that watches. Its answer has a field per figure, which `sluice status` names.
 */
export interface Figures {
  read(watch: pg.Pool): Promise<object>;
  readonly gauges: Gauges<never>;
}

export type NeedOf = FoundNeed & { readonly environmentId: number };

/** A count of an environment. */
export type Counted = Readonly<Record<'environmentId' | 'count', number>>;

/** Something that failed, with the fields that `sluice status` shows of it. */
export type Failure = object & { readonly endedAt: Date };

/** The figures of a capability in `/metrics`, `sluice status` and the overview. */
export interface FigureSeam {
  /** Unfinished work. `sluice status` shows it too. */
  readonly backlog?: Figures;
  /** Figures that cost more the more is kept. Only `/metrics` shows them. */
  readonly totals?: Figures;
  /** Kept and removed rows. `sluice status` shows it too, as `retention`. */
  readonly retention?: Figures;
  /** Reads the latest failures that are not those of jobs, SHOWN_FAILURES of them. */
  failures?(watch: pg.Pool): Promise<readonly Failure[]>;
  /** Finds what a person must attend to, in one environment or in all. */
  needs?(pool: pg.Pool, environmentId: number | null): Promise<readonly NeedOf[]>;
}

/** Returns why the service cannot start, or null. The database is migrated. */
export type Preflight = (pool: pg.Pool, config: Config) => Promise<string | null>;
