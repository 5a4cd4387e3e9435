import { type Expression, expressionBuilder, type SqlBool, sql } from 'kysely';
import type { DB } from '../postgres/schema.ts';
import { bigint, instant, integer, text } from './compile-parameters.ts';
import { testMember } from './compile-test.ts';
import { daysBefore } from './compile-text.ts';
import type { SegmentScope, UserScope } from './scope.ts';
import type { EventCondition, EventPropertyCondition } from './segment.ts';

const eb = expressionBuilder<DB>();

export function compileEvent(condition: EventCondition, scope: UserScope): Expression<SqlBool> {
  const { atLeast, atMost } = condition;
  // At most n, none included, is what n + 1 are not.
  if (atLeast === 0 && atMost !== null) return eb.not(happened(condition, scope, atMost + 1, null));
  return happened(condition, scope, atLeast, atMost);
}

function happened(
  condition: EventCondition,
  scope: UserScope,
  atLeast: number,
  atMost: number | null,
): Expression<SqlBool> {
  const user = sql.ref<string>(`${scope.user}.user_id`);
  if (atLeast === 1 && atMost === null) {
    return eb.exists(
      eventsThatCount(condition, scope)
        .select(sql.lit(1).as('one'))
        .where('segment_event.user_id', '=', user),
    );
  }
  return eb.exists(
    eb
      .selectFrom(usersWhoDid(condition, scope, atLeast, atMost).as('segment_doer'))
      .select(sql.lit(1).as('one'))
      .where('segment_doer.user_id', '=', user),
  );
}

/**
 * Counted in a table of its own, so that Postgres can choose: count all users' events once and join, or push a user into
 * it and count that one's by events_user_idx. Of `in (select …)` it would have to hold all in memory or, without the room,
 * go through them user by user.
 */
function usersWhoDid(condition: EventCondition, scope: SegmentScope, atLeast: number, atMost: number | null) {
  const counted = eventsThatCount(condition, scope)
    .select('segment_event.user_id')
    .groupBy('segment_event.user_id')
    .having(sql<boolean>`count(*) >= ${bigint(atLeast)}`);
  return atMost === null ? counted : counted.having(sql<boolean>`count(*) <= ${bigint(atMost)}`);
}

function eventsThatCount({ event, withinDays, where }: EventCondition, scope: SegmentScope) {
  const named = eb
    .selectFrom('events as segment_event')
    .where('segment_event.environment_id', '=', integer(scope.environmentId))
    .where('segment_event.event_name', '=', text(event))
    .where(eb.and(where.map((condition) => testEvent(condition, scope.now))));
  if (withinDays === null) return named;
  return named
    .where('segment_event.inserted_at', '>=', instant(daysBefore(scope.now, withinDays)))
    .where('segment_event.inserted_at', '<=', instant(scope.now.toISOString()));
}

function testEvent({ property, test, negated }: EventPropertyCondition, now: Date): Expression<SqlBool> {
  const holds = testMember(sql.ref('segment_event.metadata'), property, test, now);
  return negated ? eb.not(holds) : holds;
}
