import { type Expression, type SqlBool, sql } from 'kysely';
import type { ExportRequest } from '../../domain/export.ts';
import { instant, integer, rowsOf, texts } from './parameters.ts';
import { type LeftOut, likePattern } from './wildcard.ts';

type Condition = Expression<SqlBool>;

/** `column` is `alias.name`, of ours. */
export function inEnvironment(alias: string, environmentId: number): Condition {
  return sql<boolean>`${sql.ref(`${alias}.environment_id`)} = ${integer(environmentId)}`;
}

export function inRange(column: string, { from, to }: ExportRequest): Condition[] {
  const moment = sql.ref(column);
  const before = sql<boolean>`${moment} < ${instant(to)}`;
  return from === null ? [before] : [sql<boolean>`${moment} >= ${instant(from)}`, before];
}

/**
 * Any of a list; no list, no condition. As a join, which Postgres does with a hash table or an index, as it sees fit:
 * against `= any(…)` it would compare every row with every item.
 */
export function anyOf(column: string, values: readonly string[]): Condition[] {
  if (values.length === 0) return [];
  return [sql<boolean>`${sql.ref(column)} in (select ${rowsOf(values)})`];
}

/** A row in which the column is null is left out by nothing. */
export function noneOf(column: string, { names, patterns }: LeftOut): Condition[] {
  const conditions: Condition[] = [];
  const tested = sql.ref(column);
  if (names.length > 0) {
    conditions.push(sql<boolean>`not exists (
      select from ${rowsOf(names)} as left_out (name) where left_out.name = ${tested}
    )`);
  }
  if (patterns.length > 0) {
    const likes = texts(patterns.map(likePattern));
    conditions.push(sql<boolean>`(${tested} like any(${likes})) is not true`);
  }
  return conditions;
}
