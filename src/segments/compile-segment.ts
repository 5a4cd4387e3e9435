import { type Expression, expressionBuilder, type SqlBool, sql } from 'kysely';
import type { DB } from '../postgres/schema.ts';
import { compileEvent } from './compile-event.ts';
import { integer } from './compile-parameters.ts';
import { compileProperty } from './compile-property.ts';
import type { UserScope } from './scope.ts';
import type { Segment } from './segment.ts';

const eb = expressionBuilder<DB>();

/**
 * Whether a row of sluice.users (`scope.user` is its alias) is of the environment and in the segment: true or false, never
 * null. Put it beside other conditions with `and`, so that Postgres can make joins of what it asks of companies and events.
 * The session must look into schema sluice.
 */
export function compileSegment(segment: Segment, scope: UserScope): Expression<SqlBool> {
  const environment = sql<boolean>`${sql.ref(`${scope.user}.environment_id`)} = ${integer(scope.environmentId)}`;
  return eb.and([environment, compileNode(segment, scope)]);
}

function compileNode(segment: Segment, scope: UserScope): Expression<SqlBool> {
  switch (segment.kind) {
    case 'all':
      return eb.and(segment.segments.map((inner) => compileNode(inner, scope)));
    case 'any':
      return eb.or(segment.segments.map((inner) => compileNode(inner, scope)));
    case 'not':
      return eb.not(compileNode(segment.segment, scope));
    case 'event':
      return compileEvent(segment, scope);
    default:
      return compileProperty(segment, scope);
  }
}
