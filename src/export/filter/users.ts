import { type Expression, expressionBuilder, type SqlBool } from 'kysely';
import type { DB } from '../../postgres/schema.ts';
import { anyOf, inEnvironment, inRange, noneOf } from './conditions.ts';
import type { Filter } from './filter.ts';
import { leftOut } from './wildcard.ts';

const eb = expressionBuilder<DB>();

/** Whether a row of sluice.users is exported. */
export function exportsUser(filter: Filter, alias: string): Expression<SqlBool> {
  const { request } = filter;
  return eb.and([
    inEnvironment(alias, filter.environmentId),
    ...inRange(`${alias}.updated_at`, request),
    ...anyOf(`${alias}.company_id`, request.companyIds),
    ...noneOf(`${alias}.company_id`, leftOut(request.exclusions, 'company')),
    ...isChosen(filter, alias),
    ...filter.excludedSegments.map((isIn) => eb.not(isIn(alias))),
  ]);
}

/** What the request says of users themselves, segments to leave out aside. */
export function isChosen({ request, segment }: Filter, alias: string): Expression<SqlBool>[] {
  return [
    ...anyOf(`${alias}.user_id`, request.userIds),
    ...noneOf(`${alias}.user_id`, leftOut(request.exclusions, 'user')),
    ...(segment === null ? [] : [segment(alias)]),
  ];
}
