import { type Expression, expressionBuilder, type SqlBool, sql } from 'kysely';
import type { DB } from '../postgres/schema.ts';
import { integer } from './compile-parameters.ts';
import { compileSegment } from './compile-segment.ts';
import type { SegmentScope } from './scope.ts';
import type { Segment } from './segment.ts';

export interface CompanyScope extends SegmentScope {
  /** What the query calls sluice.companies. */
  readonly company: string;
}

const eb = expressionBuilder<DB>();
const user = 'segment_user';

/** Whether a row of sluice.companies is of the environment and has a user who is in the segment. Never null. */
export function compileCompaniesOfSegment(segment: Segment, scope: CompanyScope): Expression<SqlBool> {
  const { environmentId, company } = scope;
  return eb.and([
    sql<boolean>`${sql.ref(`${company}.environment_id`)} = ${integer(environmentId)}`,
    eb.exists(
      eb
        .selectFrom(`users as ${user}`)
        .select(sql.lit(1).as('one'))
        .where(`${user}.company_id`, '=', sql.ref<string>(`${company}.company_id`))
        .where(compileSegment(segment, { ...scope, user })),
    ),
  ]);
}
