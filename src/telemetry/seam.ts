import type pg from 'pg';
import type { Config } from '../base/config.ts';
import type { FoundNeed } from '../domain/need.ts';
import type { Gauges } from './gauges.ts';

/**
 * Figures from the database, and the gauges that show them. `read` uses a connection of the watch
 * pool, at intervals of at least several seconds. Its result has one field per figure, shown by
 * `sluice status`.
 */
export interface Figures {
  read(watch: pg.Pool): Promise<object>;
  readonly gauges: Gauges<never>;
}

export type NeedOf = FoundNeed & { readonly environmentId: number };

export type Counted = Readonly<Record<'environmentId' | 'count', number>>;

/** A failure, with the fields shown by `sluice status`. */
export type Failure = object & { readonly endedAt: Date };

/** The figures of a capability in `/metrics`, `sluice status` and the overview. */
export interface FigureSeam {
  /** Unfinished work. `sluice status` also shows it. */
  readonly backlog?: Figures;
  /** Figures whose reading takes longer when more data is stored. Only `/metrics` shows them. */
  readonly totals?: Figures;
  /** Stored and removed rows. `sluice status` also shows them, as `retention`. */
  readonly retention?: Figures;
  /** Reads the latest SHOWN_FAILURES failures of work other than jobs. */
  failures?(watch: pg.Pool): Promise<readonly Failure[]>;
  /** Finds what needs a person's attention, in one environment or in all of them. */
  needs?(pool: pg.Pool, environmentId: number | null): Promise<readonly NeedOf[]>;
}

/** Returns why the service cannot start, or `null`. Called after the database has been migrated. */
export type Preflight = (pool: pg.Pool, config: Config) => Promise<string | null>;
