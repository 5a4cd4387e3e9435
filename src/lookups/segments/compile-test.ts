import { type RawBuilder, sql } from 'kysely';
import { Fault } from '../../base/errors.ts';
import { type Comparison, MAX_COMPARED_CHARS, type PropertyTest, type Scalar } from './segment.ts';

/*
 * Conditions are never null, so `not` also works for missing properties.
 */

export function testMember(
  metadata: RawBuilder<unknown>,
  name: string,
  test: PropertyTest,
  now: Date,
): RawBuilder<boolean> {
  switch (test.kind) {
    case 'exists':
      return sql`coalesce(jsonb_typeof(${metadata} -> ${text(name)}) <> 'null', false)`;
    case 'one_of': {
      const { jsons, numbers } = spellings(test.values);
      const same = sameJson(metadata, name, test.values.length === 1, jsons);
      if (numbers.length === 0) return same;
      const isNumber = testExtracted(metadata, name, ifString(textIsNumberOf(extracted.text, numbers)));
      return sql`(${same} or ${isNumber})`;
    }
    case 'contains':
    case 'starts_with':
      return testExtracted(metadata, name, ifString(searchText(extracted.text, test)));
    case 'compare_number':
      return testExtracted(
        metadata,
        name,
        sql`case jsonb_typeof(${extracted.value})
          when 'number' then ${compareNumber(sql<number>`${extracted.value}::numeric`, test)}
          when 'string' then ${compareTextAsNumber(extracted.text, test)}
          else false
        end`,
      );
    case 'compare_date':
    case 'within_days':
      // Dates in properties are strings.
      return testExtracted(metadata, name, compareTextAsDate(extracted.text, test, now));
    default:
      return test satisfies never;
  }
}

const extracted = { value: sql.ref('stored.value'), text: sql.ref<string | null>('stored.text') };

/** Extracts the member only once, because unpacking a large object is expensive. */
function testExtracted(
  metadata: RawBuilder<unknown>,
  name: string,
  holds: RawBuilder<boolean>,
): RawBuilder<boolean> {
  // Without `offset 0`, PostgreSQL would extract the member at each use.
  return sql`(
    select ${holds}
    from (select ${metadata} -> ${text(name)} as value, ${metadata} ->> ${text(name)} as text offset 0) as stored
  )`;
}

function ifString(holds: RawBuilder<boolean>): RawBuilder<boolean> {
  return sql`case jsonb_typeof(${extracted.value}) when 'string' then ${holds} else false end`;
}

export function testTextColumn(
  column: RawBuilder<string | null>,
  test: PropertyTest,
  now: Date,
): RawBuilder<boolean> {
  switch (test.kind) {
    case 'exists':
      return sql`${column} is not null`;
    case 'one_of': {
      const { strings, numbers } = spellings(test.values);
      const same = isTextOf(column, strings);
      return numbers.length === 0 ? same : sql`(${same} or ${textIsNumberOf(column, numbers)})`;
    }
    case 'contains':
    case 'starts_with':
      return sql`coalesce(${searchText(column, test)}, false)`;
    case 'compare_number':
      return compareTextAsNumber(column, test);
    case 'compare_date':
    case 'within_days':
      return compareTextAsDate(column, test, now);
    default:
      return test satisfies never;
  }
}

export function testInstantColumn(
  column: RawBuilder<Date>,
  test: PropertyTest,
  now: Date,
): RawBuilder<boolean> {
  if (test.kind === 'exists') return sql`${column} is not null`;
  if (test.kind === 'compare_date' || test.kind === 'within_days') return testInstant(column, test, now);
  throw new Fault(`readSegment lets nobody ask ${test.kind} of an instant`);
}

/** For one item, `=` lets PostgreSQL derive conditions on joined tables. */
function isTextOf(column: RawBuilder<string | null>, strings: readonly string[]): RawBuilder<boolean> {
  const [first, ...more] = strings;
  if (first === undefined) return sql`false`;
  const same = more.length === 0 ? sql`= ${text(first)}` : sql`in ${texts(strings)}`;
  return sql`(${column} is not null and ${column} ${same})`;
}

/** For one item, a GIN index supports `@>`. */
function sameJson(
  metadata: RawBuilder<unknown>,
  name: string,
  isSingle: boolean,
  jsons: readonly string[],
): RawBuilder<boolean> {
  if (!isSingle) return sql`coalesce(${metadata} -> ${text(name)} in ${jsonbs(jsons)}, false)`;
  const contained = jsons.map(
    (json) => sql<boolean>`${metadata} @> ${jsonb(`{${JSON.stringify(name)}:${json}}`)}`,
  );
  return sql`(${sql.join(contained, sql` or `)})`;
}

/** CSV files and identify calls may have stored numbers and booleans as strings. */
function spellings(values: readonly Scalar[]) {
  /** One spelling is enough: PostgreSQL compares JSON numbers by value. */
  const jsons: string[] = [];
  const strings: string[] = [];
  const numbers: number[] = [];
  for (const value of values) {
    jsons.push(JSON.stringify(value));
    if (typeof value === 'number') numbers.push(value);
    else strings.push(String(value));
    if (typeof value === 'boolean') jsons.push(`"${value}"`);
    else if (typeof value === 'string' && (isNumeral(value) || value === 'true' || value === 'false')) {
      jsons.push(value);
    }
  }
  return { jsons, strings, numbers };
}

/*
 * All parameters are strings with a cast, because `src/postgres/copy-out.ts` replaces them by
 * settings in COPY.
 */

export const text = (value: string): RawBuilder<string> => sql`${value}::text`;

export const integer = (value: number): RawBuilder<number> => sql`${String(value)}::integer`;

export const bigint = (value: number): RawBuilder<number> => sql`${String(value)}::bigint`;

const numeric = (value: number): RawBuilder<number> => sql`${String(value)}::numeric`;

export const instant = (value: string): RawBuilder<Date> => sql`${value}::timestamptz`;

const jsonb = (json: string): RawBuilder<unknown> => sql`${json}::jsonb`;

/*
 * After `in`, PostgreSQL always hashes the items of a subquery, but those of an array only if the
 * array is constant.
 */

const texts = (values: readonly string[]): RawBuilder<string> => rows(sql`${arrayText(values)}::text[]`);

const numerics = (values: readonly number[]): RawBuilder<number> =>
  rows(sql`${arrayText(values.map(String))}::numeric[]`);

const jsonbs = (jsons: readonly string[]): RawBuilder<unknown> => rows(sql`${arrayText(jsons)}::jsonb[]`);

function rows<T>(array: RawBuilder<T[]>): RawBuilder<T> {
  return sql`(select unnest(${array}))`;
}

/** Returns an array as a single parameter, because a statement has at most 65 535 parameters. */
export function arrayText(items: readonly string[]): string {
  return `{${items.map((item) => `"${item.replace(/["\\]/g, '\\$&')}"`).join(',')}}`;
}

/*
 * Only strings in the form of a number or date are compared. `case` checks the form, because
 * PostgreSQL may evaluate the operands of `and` in any order.
 */

const operator: Readonly<Record<Comparison, RawBuilder<unknown>>> = {
  greater_than: sql`>`,
  greater_or_equal: sql`>=`,
  less_than: sql`<`,
  less_or_equal: sql`<=`,
};

type NumberTest = Extract<PropertyTest, { kind: 'compare_number' }>;
type DateTest = Extract<PropertyTest, { kind: 'compare_date' | 'within_days' }>;
type SearchTest = Extract<PropertyTest, { kind: 'contains' | 'starts_with' }>;

function textIsNumberOf(stored: RawBuilder<string | null>, numbers: readonly number[]) {
  return ifNumeral(stored, (number) => sql<boolean>`${number} in ${numerics(numbers)}`);
}

function compareTextAsNumber(stored: RawBuilder<string | null>, test: NumberTest) {
  return ifNumeral(stored, (number) => compareNumber(number, test));
}

function compareNumber(stored: RawBuilder<number>, test: NumberTest): RawBuilder<boolean> {
  return sql`${stored} ${operator[test.comparison]} ${numeric(test.number)}`;
}

/** Compares bytes, without collations and wildcards. */
function searchText(stored: RawBuilder<string | null>, test: SearchTest): RawBuilder<boolean> {
  return test.kind === 'contains'
    ? sql`strpos(${stored} collate "C", ${text(test.text)}) > 0`
    : sql`starts_with(${stored} collate "C", ${text(test.text)})`;
}

function compareTextAsDate(
  stored: RawBuilder<string | null>,
  test: DateTest,
  now: Date,
): RawBuilder<boolean> {
  return sql`case when ${isDate(stored)} then ${testInstant(instantOf(stored), test, now)} else false end`;
}

function testInstant(stored: RawBuilder<Date>, test: DateTest, now: Date): RawBuilder<boolean> {
  if (test.kind === 'compare_date') return compareInstant(stored, test.comparison, test.date);
  // `between` would convert the stored string twice.
  return sql`${stored} <@ tstzrange(${instant(daysBefore(now, test.days))}, ${instant(now.toISOString())}, '[]')`;
}

export function daysBefore(now: Date, days: number): string {
  return new Date(now.getTime() - days * 24 * 60 * 60 * 1000).toISOString();
}

/** Dates are days in UTC. An instant is greater than a date if it is after the end of that day. */
function compareInstant(stored: RawBuilder<Date>, comparison: Comparison, date: string): RawBuilder<boolean> {
  const start = instant(instantText(date));
  if (date.length === 'YYYY-MM-DD'.length) {
    // A day in the session's time zone may not have 24 hours.
    if (comparison === 'greater_than') return sql`${stored} >= ${start} + interval '24 hours'`;
    if (comparison === 'less_or_equal') return sql`${stored} < ${start} + interval '24 hours'`;
  }
  return sql`${stored} ${operator[comparison]} ${start}`;
}

/** False if the string is not a number. `isNumeral` accepts the same strings in JavaScript. */
function ifNumeral(
  stored: RawBuilder<string | null>,
  holds: (number: RawBuilder<number>) => RawBuilder<boolean>,
): RawBuilder<boolean> {
  return sql`case
    when ${isShort(stored)}
      and ${stored} collate "C" ~ '^-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][-+]?[0-9]{1,3})?$'
    then ${holds(sql<number>`${stored}::numeric`)}
    else false
  end`;
}

/** For speed, the lengths of the months are not in the regular expression. */
function isDate(stored: RawBuilder<string | null>): RawBuilder<boolean> {
  return sql`${isShort(stored)}
    and ${stored} collate "C" ~ '(?x)
      ^ [0-9]{4} - (0[1-9]|1[0-2]) - (0[1-9]|[12][0-9]|3[01])
      (
        T ([01][0-9]|2[0-3]) : [0-5][0-9]
        ( : [0-5][0-9] ([.][0-9]+)? )?
        ( Z | [-+](0[0-9]|1[0-5]):[0-5][0-9] )?
      )? $'
    and left(${stored}, 4) <> '0000'
    and substr(${stored}, 6, 5) not in ('02-30', '02-31', '04-31', '06-31', '09-31', '11-31')
    and (
      substr(${stored}, 6, 5) <> '02-29'
      or left(${stored}, 4) collate "C" ~ '(0[48]|[2468][048]|[13579][26])$|([02468][048]|[13579][26])00$'
    )`;
}

/**
 * Converts a date to an instant, in UTC if it has no offset. Removes decimals after the sixth,
 * which PostgreSQL would round. Only a text of more than 26 bytes has so many decimals.
 */
function instantOf(date: RawBuilder<string | null>): RawBuilder<Date> {
  return sql`(
    case
      when octet_length(${date}) > 26 then regexp_replace(${date}, '([.][0-9]{6})[0-9]+', '\\1')
      else ${date}
    end
    || case
      when right(${date}, 1) = 'Z' or right(${date}, 6) like '+__:__' or right(${date}, 6) like '-__:__' then ''
      else 'Z'
    end
  )::timestamptz`;
}

/** Counts bytes, because numbers and dates are ASCII. */
function isShort(stored: RawBuilder<string | null>): RawBuilder<boolean> {
  return sql`octet_length(${stored}) <= ${sql.lit(MAX_COMPARED_CHARS)}`;
}

const zone = /(?:Z|[+-](?:0[0-9]|1[0-5]):[0-9]{2})$/;
const beyondMicroseconds = /(\.[0-9]{6})[0-9]+/;

/** PostgreSQL reads the result as the same instant under all session settings. */
function instantText(date: string): string {
  const instant = date.replace(beyondMicroseconds, '$1');
  return zone.test(instant) ? instant : `${instant}Z`;
}

const shape = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?$/;

/**
 * True if the text is a JSON number, which `007` and `+1` are not. PostgreSQL refuses exponents of
 * more than three digits. `ifNumeral` is the same test in SQL.
 */
function isNumeral(text: string): boolean {
  return text.length <= MAX_COMPARED_CHARS && shape.test(text);
}
