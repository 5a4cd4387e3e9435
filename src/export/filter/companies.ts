import { type Expression, expressionBuilder, type SqlBool, sql } from 'kysely';
import type { DB } from '../../postgres/schema.ts';
import { anyOf, inEnvironment, inRange, noneOf } from './conditions.ts';
import type { Filter } from './filter.ts';
import { isChosen } from './users.ts';
import { leftOut } from './wildcard.ts';

const eb = expressionBuilder<DB>();
const member = 'export_member';

/**
 * Whether a row of sluice.companies is exported. Where users are asked for, by id or segment, it is the companies of
 * those: one user must fulfil all that is asked of users. A segment that is left out takes the companies of its users
 * with it, as a segment that is asked for brings them; users who are left out by id do not.
 */
export function exportsCompany(filter: Filter, alias: string): Expression<SqlBool> {
  const { request } = filter;
  const asksForUsers = request.userIds.length > 0 || filter.segment !== null;
  return eb.and([
    inEnvironment(alias, filter.environmentId),
    ...inRange(`${alias}.updated_at`, request),
    ...anyOf(`${alias}.company_id`, request.companyIds),
    ...noneOf(`${alias}.company_id`, leftOut(request.exclusions, 'company')),
    ...(asksForUsers ? [hasMember(filter, alias, isChosen(filter, member))] : []),
    ...filter.excludedSegments.map((isIn) => eb.not(hasMember(filter, alias, [isIn(member)]))),
  ]);
}

function hasMember(
  { environmentId }: Filter,
  alias: string,
  conditions: readonly Expression<SqlBool>[],
): Expression<SqlBool> {
  return eb.exists(
    eb
      .selectFrom(`users as ${member}`)
      .select(sql.lit(1).as('one'))
      .where(inEnvironment(member, environmentId))
      .where(`${member}.company_id`, '=', sql.ref<string>(`${alias}.company_id`))
      .where(eb.and(conditions)),
  );
}
