import { type RawBuilder, sql } from 'kysely';

/*
 * Whatever a definition says reaches Postgres as a parameter, always a string with its type beside it: so it means the
 * same where parameters are bound and where (in `copy … to`) they have to become settings, which are text.
 */

export const text = (value: string): RawBuilder<string> => sql`${value}::text`;

export const integer = (value: number): RawBuilder<number> => sql`${String(value)}::integer`;

export const bigint = (value: number): RawBuilder<number> => sql`${String(value)}::bigint`;

export const numeric = (value: number): RawBuilder<number> => sql`${String(value)}::numeric`;

/** The instant with its zone. */
export const instant = (value: string): RawBuilder<Date> => sql`${value}::timestamptz`;

/** `json` is JSON text. */
export const jsonb = (json: string): RawBuilder<unknown> => sql`${json}::jsonb`;

/*
 * Lists, for `in`. As rows of a subquery Postgres hashes them, so that a long list costs no more than a short one; the same it
 * does with arrays, but only where they are constants, which settings are not.
 */

export const texts = (values: readonly string[]): RawBuilder<string> =>
  rows(sql`${arrayText(values)}::text[]`);

export const numerics = (values: readonly number[]): RawBuilder<number> =>
  rows(sql`${arrayText(values.map(String))}::numeric[]`);

export const jsonbs = (jsons: readonly string[]): RawBuilder<unknown> =>
  rows(sql`${arrayText(jsons)}::jsonb[]`);

function rows<T>(array: RawBuilder<T[]>): RawBuilder<T> {
  return sql`(select unnest(${array}))`;
}

/** An array as Postgres reads it. One parameter, however long the list: a statement has room for 65 535. */
function arrayText(items: readonly string[]): string {
  return `{${items.map((item) => `"${item.replace(/["\\]/g, '\\$&')}"`).join(',')}}`;
}
