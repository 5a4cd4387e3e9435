import { type Expression, expressionBuilder, type RawBuilder, type SqlBool, sql } from 'kysely';
import type { DB } from '../../postgres/schema.ts';
import {
  bigint,
  daysBefore,
  instant,
  integer,
  testInstantColumn,
  testMember,
  testTextColumn,
  text,
} from './compile-test.ts';
import type {
  EventCondition,
  EventPropertyCondition,
  PropertyCondition,
  Segment,
  SegmentScope,
  UserScope,
} from './segment.ts';

const eb = expressionBuilder<DB>();
const company = 'segment_company';

/**
 * Returns the condition that `scope.user` belongs to the environment and the segment. The condition
 * is never null. Combine it with other conditions by `and`, so that PostgreSQL can use joins. The
 * search path must contain `sluice`.
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

function compileProperty(condition: PropertyCondition, scope: UserScope): Expression<SqlBool> {
  const holds =
    condition.kind === 'property'
      ? testProfile(condition, scope.user, scope.now)
      : companyHolds(condition, scope);
  return condition.negated ? eb.not(holds) : holds;
}

/** If a user has no company, the properties of the company are missing. */
function companyHolds(condition: PropertyCondition, scope: UserScope): Expression<SqlBool> {
  return eb.exists(
    eb
      .selectFrom(`companies as ${company}`)
      .select(sql.lit(1).as('one'))
      .where(`${company}.environment_id`, '=', integer(scope.environmentId))
      .where(`${company}.company_id`, '=', sql.ref<string>(`${scope.user}.company_id`))
      .where(testProfile(condition, company, scope.now)),
  );
}

/** `profile` is the alias of sluice.users or sluice.companies. */
function testProfile(
  { kind, property, test }: PropertyCondition,
  profile: string,
  now: Date,
): RawBuilder<boolean> {
  const columnKind =
    kind === 'company_property' && property === 'user_id' ? undefined : ownColumns.get(property);
  if (columnKind === undefined) return testMember(sql.ref(`${profile}.metadata`), property, test, now);
  const ref = `${profile}.${property}`;
  return columnKind === 'id'
    ? testTextColumn(sql.ref<string | null>(ref), test, now)
    : testInstantColumn(sql.ref<Date>(ref), test, now);
}

/**
 * Columns that are tested like properties. They take precedence over properties with the same name.
 */
const ownColumns: ReadonlyMap<string, 'id' | 'instant'> = new Map([
  ['user_id', 'id'],
  ['company_id', 'id'],
  ['first_seen_at', 'instant'],
  ['last_seen_at', 'instant'],
]);

function compileEvent(condition: EventCondition, scope: UserScope): Expression<SqlBool> {
  const { atLeast, atMost } = condition;
  // "At most n events" includes users without events, so it is the negation of "at least n + 1
  // events".
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
 * Users with `atLeast` to `atMost` events. If this query is a derived table, PostgreSQL can count
 * the events of all users or of one user. In `in (select …)`, it would keep all counts in memory,
 * or scan the events for each user.
 */
function usersWhoDid(condition: EventCondition, scope: UserScope, atLeast: number, atMost: number | null) {
  const { after = null, upTo = null } = scope.ids ?? {};
  const { only = null } = scope;
  const user = sql.ref<string>('segment_event.user_id');
  const counted = eventsThatCount(condition, scope)
    .$if(after !== null, (events) => events.where(sql<boolean>`${user} > ${text(after ?? '')}`))
    .$if(upTo !== null, (events) => events.where(sql<boolean>`${user} <= ${text(upTo ?? '')}`))
    .$if(only !== null, (events) => events.where(sql<boolean>`${user} = ${text(only ?? '')}`))
    .select('segment_event.user_id')
    .groupBy('segment_event.user_id')
    .having(sql<boolean>`count(*) >= ${bigint(atLeast)}`);
  return atMost === null ? counted : counted.having(sql<boolean>`count(*) <= ${bigint(atMost)}`);
}

function eventsThatCount({ event, withinDays, where }: EventCondition, scope: SegmentScope) {
  const events = eb
    .selectFrom('events as segment_event')
    .where('segment_event.environment_id', '=', integer(scope.environmentId))
    .where('segment_event.event_name', '=', text(event))
    .where(eb.and(where.map((condition) => testEvent(condition, scope.now))));
  if (withinDays === null) return events;
  return events
    .where('segment_event.inserted_at', '>=', instant(daysBefore(scope.now, withinDays)))
    .where('segment_event.inserted_at', '<=', instant(scope.now.toISOString()));
}

function testEvent({ property, test, negated }: EventPropertyCondition, now: Date): Expression<SqlBool> {
  const holds = testMember(sql.ref('segment_event.metadata'), property, test, now);
  return negated ? eb.not(holds) : holds;
}
