import { type Expression, expressionBuilder, type SqlBool, sql } from 'kysely';
import type { DB } from '../../postgres/schema.ts';
import { anyOf, inEnvironment, inRange, noneOf } from './conditions.ts';
import type { Filter, SegmentTest } from './filter.ts';
import { leftOut } from './wildcard.ts';

const eb = expressionBuilder<DB>();
const actor = 'export_actor';

/**
 * Whether a row of sluice.events is exported. A segment means the events of its users; of a user who is not stored
 * nothing is known, so that its events are in no segment.
 */
export function exportsEvent(filter: Filter, alias: string): Expression<SqlBool> {
  const { request, segment } = filter;
  const { exclusions } = request;
  return eb.and([
    inEnvironment(alias, filter.environmentId),
    ...inRange(`${alias}.inserted_at`, request),
    ...anyOf(`${alias}.user_id`, request.userIds),
    ...anyOf(`${alias}.company_id`, request.companyIds),
    ...anyOf(`${alias}.event_name`, request.eventNames),
    ...noneOf(`${alias}.user_id`, leftOut(exclusions, 'user')),
    ...noneOf(`${alias}.company_id`, leftOut(exclusions, 'company')),
    ...noneOf(`${alias}.event_name`, leftOut(exclusions, 'event')),
    ...(segment === null ? [] : [isByActor(filter, alias, segment)]),
    ...filter.excludedSegments.map((isIn) => eb.not(isByActor(filter, alias, isIn))),
  ]);
}

/**
 * Asked once of every user and then joined: `offset 0` keeps Postgres from asking anew for each event, which it would
 * do wherever it takes the events to be few.
 */
function isByActor({ environmentId }: Filter, alias: string, isIn: SegmentTest): Expression<SqlBool> {
  const actors = eb
    .selectFrom(`users as ${actor}`)
    .select(`${actor}.user_id`)
    .where(inEnvironment(actor, environmentId))
    .where(isIn(actor))
    .offset(sql.lit(0));
  return eb(sql.ref<string>(`${alias}.user_id`), 'in', actors);
}
