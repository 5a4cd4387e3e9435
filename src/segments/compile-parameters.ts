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

export const texts = (values: readonly string[]): RawBuilder<string[]> => sql`${arrayText(values)}::text[]`;

export const numerics = (values: readonly number[]): RawBuilder<number[]> =>
  sql`${arrayText(values.map(String))}::numeric[]`;

export const jsonbs = (jsons: readonly string[]): RawBuilder<unknown[]> => sql`${arrayText(jsons)}::jsonb[]`;

/** An array as Postgres reads it. One parameter, however long the list: a statement has room for 65 535. */
function arrayText(items: readonly string[]): string {
  return `{${items.map((item) => `"${item.replace(/["\\]/g, '\\$&')}"`).join(',')}}`;
}
