import { type Expression, expressionBuilder, type RawBuilder, type SqlBool, sql } from 'kysely';
import { Fault } from '../base/errors.ts';
import { createGlob } from '../base/glob.ts';
import { type Exclusion, type ExportRequest, isCursor } from '../domain/export.ts';
import { arrayText } from '../lookups/segments/compile-test.ts';
import { type Database, escapeLike } from '../postgres/database.ts';
import { findKeptFrom } from '../postgres/retirements.ts';
import type { DB } from '../postgres/schema.ts';

export type SegmentTest = (usersAlias: string) => Expression<SqlBool>;

export interface Filter {
  readonly environmentId: number;
  readonly request: ExportRequest;
  /** Condition for the selected users. `null` if all users are exported. */
  readonly segment: SegmentTest | null;
  readonly excludedSegments: readonly SegmentTest[];
  /** Source of events with the columns of `sluice.events`, which is the default. */
  readonly events?: RawBuilder<unknown>;
}

const eb = expressionBuilder<DB>();

export function exportsUser(filter: Filter, alias: string): Expression<SqlBool> {
  return eb.and([
    ...isProfile(filter, alias),
    ...isChosen(filter, alias),
    ...filter.excludedSegments.map((isIn) => eb.not(isIn(alias))),
  ]);
}

function isProfile({ environmentId, request }: Filter, alias: string): Condition[] {
  return [
    inEnvironment(alias, environmentId),
    ...isSince(alias, request),
    ...inRange(`${alias}.updated_at`, request),
    ...anyOf(`${alias}.company_id`, request.companyIds),
    ...noneOf(`${alias}.company_id`, excludedValues(request.exclusions, 'company')),
  ];
}

function isChosen({ request, segment }: Filter, alias: string): Expression<SqlBool>[] {
  return [
    ...anyOf(`${alias}.user_id`, request.userIds),
    ...noneOf(`${alias}.user_id`, excludedValues(request.exclusions, 'user')),
    ...(segment === null ? [] : [segment(alias)]),
  ];
}

const member = 'export_member';

/**
 * If the request selects users, a company is exported only if a selected user belongs to it. An
 * excluded segment excludes the companies of its users. An excluded user id does not exclude the
 * company.
 */
export function exportsCompany(filter: Filter, alias: string): Expression<SqlBool> {
  const { request } = filter;
  const selectsUsers = request.userIds.length > 0 || filter.segment !== null;
  return eb.and([
    ...isProfile(filter, alias),
    ...(selectsUsers ? [isOneOf(`${alias}.company_id`, companiesOf(filter, isChosen(filter, member)))] : []),
    ...filter.excludedSegments.map((isIn) =>
      isNoneOf(`${alias}.company_id`, companiesOf(filter, [isIn(member)])),
    ),
  ]);
}

function companiesOf({ environmentId }: Filter, conditions: readonly Expression<SqlBool>[]) {
  return eb
    .selectFrom(`users as ${member}`)
    .select(sql.ref<string>(`${member}.company_id`).as('id'))
    .where(inEnvironment(member, environmentId))
    .where(eb.and(conditions));
}

/**
 * Uses `not exists`. If the ids do not fit in the memory of PostgreSQL's hash table, `not in` would
 * compare every row with every id.
 */
function isNoneOf(column: string, ids: Expression<unknown>): Condition {
  return sql<boolean>`not exists (select 1 from (${ids}) as left_out (id) where left_out.id = ${sql.ref(column)})`;
}

function isOneOf(column: string, ids: Expression<unknown>): Condition {
  return sql<boolean>`${sql.ref(column)} in (${ids})`;
}

const actor = 'export_actor';

/** A user without a profile is in no segment, so no segment selects or excludes its events. */
export function exportsEvent(filter: Filter, alias: string): Expression<SqlBool> {
  const { request } = filter;
  const { exclusions } = request;
  return eb.and([
    inEnvironment(alias, filter.environmentId),
    ...isSince(alias, request),
    ...inRange(`${alias}.inserted_at`, request),
    ...anyOf(`${alias}.user_id`, request.userIds),
    ...anyOf(`${alias}.company_id`, request.companyIds),
    ...isOfKind(alias, request),
    ...noneOf(`${alias}.user_id`, excludedValues(exclusions, 'user')),
    ...noneOf(`${alias}.company_id`, excludedValues(exclusions, 'company')),
    ...noneOf(`${alias}.event_name`, excludedValues(exclusions, 'event')),
    ...inSegments(filter, `${alias}.user_id`),
  ]);
}

function inSegments(filter: Filter, column: string): Condition[] {
  const { segment, excludedSegments } = filter;
  return [
    ...(segment === null ? [] : [isOneOf(column, actorsIn(filter, segment))]),
    ...excludedSegments.map((isIn) => isNoneOf(column, actorsIn(filter, isIn))),
  ];
}

function isOfKind(alias: string, { eventKinds, eventNames }: ExportRequest): Condition[] {
  const either = [...anyOf(`${alias}.event_type`, eventKinds), ...anyOf(`${alias}.event_name`, eventNames)];
  return either.length === 0 ? [] : [eb.or(either)];
}

/** `offset 0` prevents PostgreSQL from evaluating the segment once per event. */
function actorsIn({ environmentId }: Filter, isIn: SegmentTest) {
  return eb
    .selectFrom(`users as ${actor}`)
    .select(`${actor}.user_id`)
    .where(inEnvironment(actor, environmentId))
    .where(isIn(actor))
    .offset(sql.lit(0));
}

type Condition = Expression<SqlBool>;

/** Condition for the rows of an environment. `alias` must not come from a user. */
export function inEnvironment(alias: string, environmentId: number): Condition {
  return sql<boolean>`${sql.ref(`${alias}.environment_id`)} = ${integer(environmentId)}`;
}

function inRange(column: string, { from, to }: ExportRequest): Condition[] {
  const moment = sql.ref(column);
  return [
    ...(from === null ? [] : [sql<boolean>`${moment} >= ${instant(from)}`]),
    ...(to === null ? [] : [sql<boolean>`${moment} < ${instant(to)}`]),
  ];
}

export const cursorExpired =
  'The cursor is older than the log of changes, or not of this database; export everything without `since`, and continue with the cursor of that export';

/** Condition for rows whose transaction is not visible in the cursor's snapshot. */
export function isSince(alias: string, { since }: ExportRequest): Condition[] {
  if (since === null) return [];
  // The cursor is a literal, so that the planner can use the BRIN index. The literal is safe:
  // `isCursor` allows only digits, colons and commas.
  if (!isCursor(since)) throw new Fault('the cursor of an export is malformed');
  return [sql<boolean>`is_since(${sql.ref(`${alias}.position`)}, ${sql.lit(since)}::pg_snapshot)`];
}

/**
 * Uses `in (select …)`, for which PostgreSQL can use a hash table or an index. With `= any(…)`, it
 * would compare every row with every item.
 */
function anyOf(column: string, values: readonly string[]): Condition[] {
  if (values.length === 0) return [];
  return [sql<boolean>`${sql.ref(column)} in (select ${rowsOf(values)})`];
}

/** Condition that excludes the given values. A row whose column is null is kept. */
export function noneOf(column: string, { names, patterns }: ExcludedValues): Condition[] {
  const likes = texts(patterns.map(likePattern));
  return [
    ...(names.length === 0 ? [] : [isNoneOf(column, sql`select ${rowsOf(names)}`)]),
    ...(patterns.length === 0 ? [] : [sql<boolean>`(${sql.ref(column)} like any(${likes})) is not true`]),
  ];
}

/** Maximum number of names for which comparing each one is cheaper than a hash table. */
const fewNames = 20;

export function withoutProperties(metadata: RawBuilder<unknown>, { names, patterns }: ExcludedValues) {
  if (names.length === 0 && patterns.length === 0) return metadata;
  if (names.length <= fewNames && patterns.length === 0) return sql`(${metadata} - ${texts(names)})`;
  const likes = texts(patterns.map(likePattern));
  return sql`(
    select coalesce(jsonb_object_agg(key, value), '{}')
    from jsonb_each(${metadata})
    where key not in (select ${rowsOf(names)})
      and (key like any(${likes})) is not true
  )`;
}

/** Values to exclude. In `patterns`, `*` matches any number of characters. */
interface ExcludedValues {
  readonly names: readonly string[];
  readonly patterns: readonly string[];
}

export function excludedValues(exclusions: readonly Exclusion[], kind: Exclusion['kind']): ExcludedValues {
  const terms = exclusions.filter((exclusion) => exclusion.kind === kind).map(({ pattern }) => pattern);
  return {
    names: terms.filter((term) => !term.includes('*')),
    patterns: terms.filter((term) => term.includes('*')),
  };
}

function likePattern(pattern: string): string {
  return escapeLike(pattern).replaceAll('*', '%');
}

export function nameTest({ names, patterns }: ExcludedValues): (name: string) => boolean {
  const exact = new Set(names);
  const globs = patterns.map((pattern) => createGlob(pattern));
  return (name) => exact.has(name) || globs.some((matches) => matches(name));
}

// Filter values are text parameters with a cast (`src/postgres/copy-out.ts`). Only the environment
// and the times are literals, for the planner's estimates. These literals are always numbers.

export const texts = (values: readonly string[]): RawBuilder<string[]> => sql`${arrayText(values)}::text[]`;

const rowsOf = (values: readonly string[]): RawBuilder<string> =>
  sql`unnest(cast(${arrayText(values)} as text[]))`;

function integer(value: number): RawBuilder<number> {
  if (!Number.isSafeInteger(value)) throw new Fault(`${value} is no integer`);
  return sql`${sql.lit(value)}`;
}

const instantForm = /^(\d{4,5}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?Z$/;

function instant(iso: string): RawBuilder<Date> {
  const { seconds, micros } = partsOf(iso);
  // The planner treats this immutable expression as a constant. It is exact for centuries.
  return sql`to_timestamp(${integer(seconds)} + ${integer(micros)} / 1e6)`;
}

/** Returns microseconds since 1970. They are not exact after the year 2255. */
export function microsOf(iso: string): number {
  const { seconds, micros } = partsOf(iso);
  return seconds * 1e6 + micros;
}

function partsOf(iso: string): { readonly seconds: number; readonly micros: number } {
  const [, whole, fraction = ''] = instantForm.exec(iso) ?? [];
  const seconds = Date.parse(`${whole}Z`) / 1000;
  if (Number.isNaN(seconds)) throw new Fault(`${iso} is no instant in UTC`);
  return { seconds, micros: Number(fraction.padEnd(6, '0')) };
}

/**
 * Returns the instant before which retention may have removed events, or `null` if the range does
 * not begin before this instant.
 */
export async function findLaterStart(
  db: Database,
  { datasets, since, from }: Pick<ExportRequest, 'datasets' | 'since' | 'from'>,
): Promise<string | null> {
  if (!datasets.includes('events') || since !== null) return null;
  const keptFrom = await findKeptFrom(db);
  return keptFrom === null || (from !== null && microsOf(from) >= microsOf(keptFrom)) ? null : keptFrom;
}
