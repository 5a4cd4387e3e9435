import { type RawBuilder, sql } from 'kysely';
import { Fault } from '../domain/errors.ts';
import { jsonb, jsonbs, text, texts } from './compile-parameters.ts';
import {
  compareNumber,
  compareTextAsDate,
  compareTextAsNumber,
  searchText,
  testInstant,
  textIsNumberOf,
} from './compile-text.ts';
import { isNumeral } from './numeral.ts';
import type { PropertyTest, Scalar } from './segment.ts';

/* Every test is true or false, never null: what is missing must not slip through `not`. */

/** Of a member of a jsonb object. */
export function testMember(
  metadata: RawBuilder<unknown>,
  name: string,
  test: PropertyTest,
  now: Date,
): RawBuilder<boolean> {
  const stored = sql`(${metadata} -> ${text(name)})`;
  const storedText = sql<string>`(${metadata} ->> ${text(name)})`;
  const ofString = (holds: RawBuilder<boolean>): RawBuilder<boolean> =>
    sql`case jsonb_typeof(${stored}) when 'string' then ${holds} else false end`;
  switch (test.kind) {
    case 'exists':
      return sql`coalesce(jsonb_typeof(${stored}) <> 'null', false)`;
    case 'one_of': {
      const { jsons, numbers } = spellings(test.values);
      const same = sameJson(metadata, name, stored, test.values.length === 1, jsons);
      if (numbers.length === 0) return same;
      return sql`(${same} or ${ofString(textIsNumberOf(storedText, numbers))})`;
    }
    case 'contains':
    case 'starts_with':
      return ofString(searchText(storedText, test));
    case 'compare_number':
      return sql`case jsonb_typeof(${stored})
        when 'number' then ${compareNumber(sql<number>`${stored}::numeric`, test)}
        when 'string' then ${compareTextAsNumber(storedText, test)}
        else false
      end`;
    case 'compare_date':
    case 'within_days':
      return ofString(compareTextAsDate(storedText, test, now));
    default:
      return test satisfies never;
  }
}

/** Of a column of text, which may be null. */
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
      const same = sql<boolean>`(${column} is not null and ${column} = any(${texts(strings)}))`;
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

/** Of a column that is an instant and not null. */
export function testInstantColumn(
  column: RawBuilder<Date>,
  test: PropertyTest,
  now: Date,
): RawBuilder<boolean> {
  if (test.kind === 'exists') return sql`${column} is not null`;
  if (test.kind === 'compare_date' || test.kind === 'within_days') return testInstant(column, test, now);
  throw new Fault(`readSegment lets nobody ask ${test.kind} of an instant`);
}

/** Containment, of a single value, since an index can answer it (`using gin (metadata jsonb_path_ops)`). */
function sameJson(
  metadata: RawBuilder<unknown>,
  name: string,
  stored: RawBuilder<unknown>,
  isSingle: boolean,
  jsons: readonly string[],
): RawBuilder<boolean> {
  if (!isSingle) return sql`coalesce(${stored} = any(${jsonbs(jsons)}), false)`;
  const contained = jsons.map(
    (json) => sql<boolean>`${metadata} @> ${jsonb(`{${JSON.stringify(name)}:${json}}`)}`,
  );
  return sql`(${sql.join(contained, sql` or `)})`;
}

/** What a stored value may be to equal one of `values`: CSV and identify keep numbers and booleans as strings. */
function spellings(values: readonly Scalar[]) {
  /** Stored values as JSON, whose numbers Postgres compares as numbers. */
  const jsons: string[] = [];
  /** Stored strings, the same text. */
  const strings: string[] = [];
  /** Stored strings that are numbers. */
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
