import { type RawBuilder, sql } from 'kysely';
import type { Entity } from '../../domain/entity.ts';

/** Which load and chunk merges, for whom. */
export interface MergeScope {
  readonly environmentId: number;
  readonly loadId: number;
  readonly chunkNo: number;
  /** Some row of the batch removes a property or its company. */
  readonly removes: boolean;
  /** No row of the batch removes anything or has a property that is an object or an array. */
  readonly flat: boolean;
  /** Which rows of the batch stand for a record and so belong in the tally. */
  readonly counted: 'all' | 'some' | 'none';
  /** Keep the hashes of the keys met: only a load of several chunks can meet a key in two. */
  readonly noteKeys: boolean;
}

/** 64-bit hash of `key`, two low bits clear. */
export const keyHash = (key: RawBuilder<unknown>): RawBuilder<string> =>
  sql<string>`(hashtextextended(${key}, 0) & -4)`;

/** `stored` with `incoming` laid over it; nulls remove. */
export function merged(
  stored: RawBuilder<unknown>,
  incoming: RawBuilder<unknown>,
  removes: boolean,
): RawBuilder<unknown> {
  return removes ? sql`sluice.without_nulls(${stored} || ${incoming})` : sql`${stored} || ${incoming}`;
}

/** Whether a stored user's company stays what it is. */
export function sameCompany(stored: RawBuilder<unknown>, incoming: RawBuilder<unknown>): RawBuilder<boolean> {
  return sql<boolean>`(${incoming} is null or ${stored} is not distinct from nullif(${incoming}, ''))`;
}

/**
 * Whether laying `incoming` over `stored` changes nothing. Among plain values, "contains" says so and costs a
 * fraction of merging and comparing; of nested ones it would call a subset equal.
 */
export function changesNothing(
  stored: RawBuilder<unknown>,
  incoming: RawBuilder<unknown>,
  scope: Pick<MergeScope, 'flat' | 'removes'>,
): RawBuilder<boolean> {
  if (scope.flat) return sql<boolean>`${stored} @> ${incoming}`;
  return sql<boolean>`${merged(stored, incoming, scope.removes)} = ${stored}`;
}

/** Whether the stored row `p` already holds all that the incoming row `i` brings. */
export function holdsAlready(entity: Entity, scope: MergeScope): RawBuilder<boolean> {
  const same = changesNothing(sql.ref('p.metadata'), sql.ref('i.properties'), scope);
  return entity === 'users'
    ? sql<boolean>`(${same} and ${sameCompany(sql.ref('p.company_id'), sql.ref('i.company'))})`
    : same;
}
