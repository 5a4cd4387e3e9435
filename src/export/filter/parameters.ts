import { type RawBuilder, sql } from 'kysely';
import { Fault } from '../../domain/errors.ts';

/*
 * What a filter is told reaches Postgres as a parameter, always text with its type beside it; see
 * `../write/copy-select.ts` for what becomes of parameters in COPY. Only numbers that are made here, the environment and
 * the bounds in time, are written out: Postgres then knows them when it plans, and need not read them for every row.
 */

export const text = (value: string): RawBuilder<string> => sql`${value}::text`;

export const texts = (values: readonly string[]): RawBuilder<string[]> => sql`${arrayText(values)}::text[]`;

/** One row per value. `cast`: the planner is to look at the values, to know how many rows will match. */
export const rowsOf = (values: readonly string[]): RawBuilder<string> =>
  sql`unnest(cast(${arrayText(values)} as text[]))`;

export function integer(value: number): RawBuilder<number> {
  if (!Number.isSafeInteger(value)) throw new Fault(`${value} is no integer`);
  return sql`${sql.lit(value)}`;
}

const instantForm = /^(\d{4,5}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?Z$/;

/** An instant of an `ExportRequest`. */
export function instant(iso: string): RawBuilder<Date> {
  const [, whole, fraction = ''] = instantForm.exec(iso) ?? [];
  const seconds = Date.parse(`${whole}Z`) / 1000;
  if (Number.isNaN(seconds)) throw new Fault(`${iso} is no instant in UTC`);
  const micros = Number(fraction.padEnd(6, '0'));
  // Immutable, so that it is a constant to the planner; exact to the microsecond for centuries to come.
  return sql`to_timestamp(${integer(seconds)} + ${integer(micros)} / 1e6)`;
}

/** An array as Postgres reads it. One parameter, however long the list. */
function arrayText(items: readonly string[]): string {
  return `{${items.map((item) => `"${item.replace(/["\\]/g, '\\$&')}"`).join(',')}}`;
}
