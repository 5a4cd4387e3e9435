import { type Expression, expressionBuilder, type RawBuilder, type SqlBool, sql } from 'kysely';
import type { DB } from '../postgres/schema.ts';
import { integer } from './compile-parameters.ts';
import { testInstantColumn, testMember, testTextColumn } from './compile-test.ts';
import { profileColumn } from './profile-columns.ts';
import type { UserScope } from './scope.ts';
import type { PropertyCondition } from './segment.ts';

const eb = expressionBuilder<DB>();
const company = 'segment_company';

export function compileProperty(condition: PropertyCondition, scope: UserScope): Expression<SqlBool> {
  const holds =
    condition.kind === 'property'
      ? testProfile(condition, scope.user, scope.now)
      : companyHolds(condition, scope);
  return condition.negated ? eb.not(holds) : holds;
}

/** Of a user without a company, and of one whose company has no row, all of its properties are missing. */
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

/** `profile`: what the query calls sluice.users or sluice.companies. */
function testProfile(
  { kind, property, test }: PropertyCondition,
  profile: string,
  now: Date,
): RawBuilder<boolean> {
  const own = profileColumn(kind, property);
  if (own === null) return testMember(sql.ref(`${profile}.metadata`), property, test, now);
  const ref = `${profile}.${own.column}`;
  return own.type === 'id'
    ? testTextColumn(sql.ref<string | null>(ref), test, now)
    : testInstantColumn(sql.ref<Date>(ref), test, now);
}
