import { type Expression, expressionBuilder, type RawBuilder, type SqlBool, sql } from 'kysely';
import { Fault, FinalFailure } from '../base/errors.ts';
import { createGlob } from '../base/glob.ts';
import { type Exclusion, type ExportRequest, isCursor } from '../domain/export.ts';
import { type DefinedSegment, readSegmentDefinitions } from '../lookups/segment-store.ts';
import { compileSegment } from '../lookups/segments/compile-segment.ts';
import { arrayText } from '../lookups/segments/compile-test.ts';
import { readSegment } from '../lookups/segments/read-segment.ts';
import type { Segment } from '../lookups/segments/segment.ts';
import { type Database, literally } from '../postgres/database.ts';
import type { DB } from '../postgres/schema.ts';

/** True if a row of sluice.users, under the alias given, is in a segment. */
export type SegmentTest = (usersAlias: string) => Expression<SqlBool>;

/** Which rows an export holds. */
export interface Filter {
  readonly environmentId: number;
  readonly request: ExportRequest;
  readonly segment: SegmentTest | null;
  readonly excludedSegments: readonly SegmentTest[];
  /** The source of events, with the columns of `sluice.events`, its default. */
  readonly events?: RawBuilder<unknown>;
}

const eb = expressionBuilder<DB>();

/** Returns true if a row of sluice.users is exported. */
export function exportsUser(filter: Filter, alias: string): Expression<SqlBool> {
  const { request } = filter;
  return eb.and([
    inEnvironment(alias, filter.environmentId),
    ...isSince(alias, request),
    ...inRange(`${alias}.updated_at`, request),
    ...anyOf(`${alias}.company_id`, request.companyIds),
    ...noneOf(`${alias}.company_id`, leftOut(request.exclusions, 'company')),
    ...isChosen(filter, alias),
    ...filter.excludedSegments.map((isIn) => eb.not(isIn(alias))),
  ]);
}

/** Returns the request's conditions on users themselves, without segments to leave out. */
function isChosen({ request, segment }: Filter, alias: string): Expression<SqlBool>[] {
  return [
    ...anyOf(`${alias}.user_id`, request.userIds),
    ...noneOf(`${alias}.user_id`, leftOut(request.exclusions, 'user')),
    ...(segment === null ? [] : [segment(alias)]),
  ];
}

const member = 'export_member';

/**
 * Tells whether a row of sluice.companies is exported. Where users are asked for, by id or segment, it is the companies of
 * those: one user must fulfil all that is asked of users. A segment that is left out takes the companies of its users
 * with it, as a segment that is asked for brings them; users who are left out by id do not.
 */
export function exportsCompany(filter: Filter, alias: string): Expression<SqlBool> {
  const { request } = filter;
  const asksForUsers = request.userIds.length > 0 || filter.segment !== null;
  return eb.and([
    inEnvironment(alias, filter.environmentId),
    ...isSince(alias, request),
    ...inRange(`${alias}.updated_at`, request),
    ...anyOf(`${alias}.company_id`, request.companyIds),
    ...noneOf(`${alias}.company_id`, leftOut(request.exclusions, 'company')),
    ...(asksForUsers ? [isOneOf(`${alias}.company_id`, companiesOf(filter, isChosen(filter, member)))] : []),
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

/** Not `not in`, for which Postgres compares each with all where they are too many for its memory. */
function isNoneOf(column: string, ids: Expression<unknown>): Condition {
  return sql<boolean>`not exists (select 1 from (${ids}) as left_out (id) where left_out.id = ${sql.ref(column)})`;
}

function isOneOf(column: string, ids: Expression<unknown>): Condition {
  return sql<boolean>`${sql.ref(column)} in (${ids})`;
}

const actor = 'export_actor';

/** Tells whether a row of sluice.events is exported. A segment means the events of its users; a user who is not stored is in none. */
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
    ...noneOf(`${alias}.user_id`, leftOut(exclusions, 'user')),
    ...noneOf(`${alias}.company_id`, leftOut(exclusions, 'company')),
    ...noneOf(`${alias}.event_name`, leftOut(exclusions, 'event')),
    ...inSegments(filter, `${alias}.user_id`),
  ]);
}

/** Returns what segments ask of the user in a column. */
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

/** The users in a segment, joined: without `offset 0`, Postgres would ask anew for each event where it takes the events to be few. */
function actorsIn({ environmentId }: Filter, isIn: SegmentTest) {
  return eb
    .selectFrom(`users as ${actor}`)
    .select(`${actor}.user_id`)
    .where(inEnvironment(actor, environmentId))
    .where(isIn(actor))
    .offset(sql.lit(0));
}

type Condition = Expression<SqlBool>;

/** `column` is `alias.name`, of ours. */
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

/** Holds for rows of transactions that the cursor of the request does not see. */
export function isSince(alias: string, { since }: ExportRequest): Condition[] {
  if (since === null) return [];
  // Digits, colons and commas, as a constant: the planner then takes block ranges where that is quicker.
  if (!isCursor(since)) throw new Fault('the cursor of an export is malformed');
  return [sql<boolean>`is_since(${sql.ref(`${alias}.position`)}, ${sql.lit(since)}::pg_snapshot)`];
}

/** Any of a list; without one, no condition. A join may hash or use an index; `= any(…)` compares every row with every item. */
function anyOf(column: string, values: readonly string[]): Condition[] {
  if (values.length === 0) return [];
  return [sql<boolean>`${sql.ref(column)} in (select ${rowsOf(values)})`];
}

/** A row in which the column is null is left out by nothing. */
export function noneOf(column: string, { names, patterns }: LeftOut): Condition[] {
  const likes = texts(patterns.map(likePattern));
  return [
    ...(names.length === 0 ? [] : [isNoneOf(column, sql`select ${rowsOf(names)}`)]),
    ...(patterns.length === 0 ? [] : [sql<boolean>`(${sql.ref(column)} like any(${likes})) is not true`]),
  ];
}

/** Names beyond which a hash table of them is worth taking the object apart. */
const fewNames = 20;

/** A jsonb object without some of its properties. */
export function withoutProperties(metadata: RawBuilder<unknown>, { names, patterns }: LeftOut) {
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

/** Values to leave out: plain texts, and patterns in which `*` stands for any text. */
interface LeftOut {
  readonly names: readonly string[];
  readonly patterns: readonly string[];
}

export function leftOut(exclusions: readonly Exclusion[], kind: Exclusion['kind']): LeftOut {
  const terms = exclusions.filter((exclusion) => exclusion.kind === kind).map(({ pattern }) => pattern);
  return {
    names: terms.filter((term) => !term.includes('*')),
    patterns: terms.filter((term) => term.includes('*')),
  };
}

function likePattern(pattern: string): string {
  return literally(pattern).replaceAll('*', '%');
}

/** The same in JavaScript, for names of columns. */
export function nameTest({ names, patterns }: LeftOut): (name: string) => boolean {
  const exact = new Set(names);
  const globs = patterns.map((pattern) => createGlob(pattern));
  return (name) => exact.has(name) || globs.some((matches) => matches(name));
}

/*
 * The values of a filter reach Postgres as parameters, always text with the type beside it; see
 * `src/postgres/copy-out.ts` for what becomes of parameters in COPY. Only numbers that are made here, the environment and
 * the bounds in time, are written out: Postgres then knows them when it plans, and need not read them for every row.
 */

export const texts = (values: readonly string[]): RawBuilder<string[]> => sql`${arrayText(values)}::text[]`;

/** Returns a row for each value. With `cast`, the planner looks at the values to estimate the matching rows. */
const rowsOf = (values: readonly string[]): RawBuilder<string> =>
  sql`unnest(cast(${arrayText(values)} as text[]))`;

function integer(value: number): RawBuilder<number> {
  if (!Number.isSafeInteger(value)) throw new Fault(`${value} is no integer`);
  return sql`${sql.lit(value)}`;
}

const instantForm = /^(\d{4,5}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?Z$/;

function instant(iso: string): RawBuilder<Date> {
  const { seconds, micros } = partsOf(iso);
  // Immutable, so that it is a constant to the planner; exact to the microsecond for centuries to come.
  return sql`to_timestamp(${integer(seconds)} + ${integer(micros)} / 1e6)`;
}

/** An instant of an `ExportRequest`, in microseconds since 1970; beyond the year 2255 not to the last digit. */
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

/** The segments that a request names, as they are defined now; `now` is what days are counted back from. Throws `FinalFailure` for one that is gone. */
export async function findSegments(
  db: Database,
  environmentId: number,
  { segmentId, exclusions }: ExportRequest,
  now = new Date(),
): Promise<Pick<Filter, 'segment' | 'excludedSegments'>> {
  const patterns = exclusions.filter(({ kind }) => kind === 'segment').map(({ pattern }) => pattern);
  if (segmentId === null && patterns.length === 0) return { segment: null, excludedSegments: [] };
  const rows = await readSegmentDefinitions(db, environmentId);
  const wanted = rows.find((row) => row.id === segmentId);
  if (segmentId !== null && wanted === undefined) throw gone(segmentId);
  for (const pattern of patterns.filter((each) => !each.includes('*'))) {
    if (!rows.some((row) => row.id === Number(pattern))) throw gone(pattern);
  }
  const segment = wanted === undefined ? null : read(wanted);
  const excluded = rows
    .filter((row) => patterns.some((pattern) => matches(pattern, row.id)))
    .map((row) => read(row));
  const compile =
    (each: Segment): SegmentTest =>
    (user) =>
      compileSegment(each, { environmentId, now, user });
  return { segment: segment && compile(segment), excludedSegments: excluded.map(compile) };
}

function matches(pattern: string, id: number): boolean {
  if (!pattern.includes('*')) return Number(pattern) === id;
  return createGlob(pattern)(String(id));
}

function read(row: DefinedSegment): Segment {
  const { segment } = readSegment(row.definition);
  if (segment !== null) return segment;
  throw new FinalFailure('unknown_segment', `the definition of segment ${row.id} cannot be read`);
}

function gone(id: number | string): FinalFailure {
  return new FinalFailure('unknown_segment', `segment ${id} was removed before the export began`);
}
