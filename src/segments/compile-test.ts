import { type RawBuilder, sql } from 'kysely';
import { Fault } from '../domain/errors.ts';
import {
  compareNumber,
  compareTextAsDate,
  compareTextAsNumber,
  isNumeral,
  jsonb,
  jsonbs,
  searchText,
  testInstant,
  text,
  textIsNumberOf,
  texts,
} from './compile-text.ts';
import type { PropertyTest, Scalar } from './segment.ts';

/* Every test is true or false, never null: what is missing must not slip through `not`. */

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
      // Nothing but a string has the text of a date.
      return testExtracted(metadata, name, compareTextAsDate(extracted.text, test, now));
    default:
      return test satisfies never;
  }
}

const extracted = { value: sql.ref('stored.value'), text: sql.ref<string | null>('stored.text') };

/** Takes the member out of the object once, however often it is looked at: a large object has to be unpacked for it. */
function testExtracted(
  metadata: RawBuilder<unknown>,
  name: string,
  holds: RawBuilder<boolean>,
): RawBuilder<boolean> {
  // Without the offset, Postgres would put the expressions back wherever the columns stand; it leaves out unused ones anyway.
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

/** A single value with `=`, so that Postgres knows the column to be constant, in the tables joined by it too. */
function isTextOf(column: RawBuilder<string | null>, strings: readonly string[]): RawBuilder<boolean> {
  const [first, ...more] = strings;
  if (first === undefined) return sql`false`;
  const same = more.length === 0 ? sql`= ${text(first)}` : sql`in ${texts(strings)}`;
  return sql`(${column} is not null and ${column} ${same})`;
}

/** Containment, of a single value, since an index can answer it (`using gin (metadata jsonb_path_ops)`). */
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

/** Returns the stored forms equal to one of `values`: CSV and identify keep numbers and booleans as strings. */
function spellings(values: readonly Scalar[]) {
  /** Stored values as JSON, whose numbers Postgres compares as numbers. */
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
