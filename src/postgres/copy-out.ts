import { addAbortSignal } from 'node:stream';
import {
  createQueryId,
  PostgresQueryCompiler,
  type RawNode,
  type RootOperationNode,
  ValueNode,
} from 'kysely';
import type pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { Fault } from '../base/errors.ts';

/**
 * Format in which COPY sends rows. `csv`: rows of a CSV file. `values`: lines of unquoted values
 * that are separated by U+0002. `values` is only for JSON text and numbers, which contain neither
 * U+0002 nor the quote U+0001.
 */
export type CopyFormat = 'csv' | 'values';

/** Text that means null in CSV. A value with the same text is quoted. */
export const copyNull = '\u0001';

const options: Readonly<Record<CopyFormat, string>> = {
  csv: `format csv, null E'\\x01'`,
  values: `format csv, quote E'\\x01', delimiter E'\\x02'`,
};

/**
 * Yields the output of COPY. At the end, returns the number of rows that PostgreSQL reports. The
 * client must be in a transaction.
 */
export async function* copyOut(
  client: pg.PoolClient,
  select: CopySelect,
  format: CopyFormat,
  signal: AbortSignal,
): AsyncGenerator<Buffer, number> {
  await setParameters(client, select);
  signal.throwIfAborted();
  const stream = copyTo(`copy (${select.text}) to stdout (${options[format]})`);
  // Without a listener, an error after the caller stopped reading would end the process.
  stream.on('error', () => undefined);
  client.query(stream);
  addAbortSignal(signal, stream);
  try {
    yield* stream as AsyncIterable<Buffer>;
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
  // PostgreSQL sends the number of rows last. The empty query returns only after that.
  await client.query('');
  return stream.rowCount;
}

export async function estimateRows(client: pg.PoolClient, select: CopySelect): Promise<number> {
  await setParameters(client, select);
  const { rows } = await client.query<{ 'QUERY PLAN': readonly { Plan: { 'Plan Rows': number } }[] }>(
    `explain (format json) ${select.text}`,
  );
  const estimate = rows[0]?.['QUERY PLAN'][0]?.Plan['Plan Rows'];
  if (estimate === undefined) throw new Fault('explain said nothing of rows');
  return estimate;
}

// COPY accepts no parameters, and callers' values must not become SQL text. `setParameters` stores
// each parameter in a setting of the transaction, and `$3` becomes `current_setting('sluice.p3')`.
// The query adds the type. current_setting is stable, so the planner uses the value for estimates,
// indexes and partitions. A filter would read and cast the setting for each row. Therefore, a
// parameter with only a cast, as in sql`${value}::text[]`, becomes a subquery, which runs once.
const prefix = 'sluice.p';
/**
 * A parameter that is longer than this is set by its own statement. This is faster than adding the
 * parameter to the array of the other parameters.
 */
const longText = 16 * 1024;

export interface CopySelect {
  readonly text: string;
  readonly parameters: readonly string[];
}

export interface Compilable {
  toOperationNode(): RootOperationNode;
}

/** @throws Fault if a parameter is not text */
export function compileForCopy(query: Compilable): CopySelect {
  const compiled = new SettingsCompiler().compileQuery(query.toOperationNode(), createQueryId());
  return { text: compiled.sql, parameters: compiled.parameters.map(requireText) };
}

/**
 * Sets the parameters of a query. The settings last until the transaction ends or another
 * statement's parameters replace them.
 */
export async function setParameters(client: pg.PoolClient, { parameters }: CopySelect): Promise<void> {
  const settings = parameters.map((value, index) => [`${prefix}${index + 1}`, value] as const);
  const isLong = ([, value]: (typeof settings)[number]): boolean => value.length > longText;
  const short = settings.filter((setting) => !isLong(setting));
  await client.query(
    'select count(set_config(name, value, true)) from unnest($1::text[], $2::text[]) as setting (name, value)',
    [short.map(([name]) => name), short.map(([, value]) => value)],
  );
  for (const setting of settings.filter(isLong)) {
    await client.query('select set_config($1, $2, true) is null', [...setting]);
  }
}

class SettingsCompiler extends PostgresQueryCompiler {
  protected override getCurrentParameterPlaceholder(): string {
    return `current_setting('${prefix}${this.numParameters}')`;
  }

  protected override visitRaw(node: RawNode): void {
    const cast = castOf(node);
    if (cast !== null) this.append('(select ');
    super.visitRaw(node);
    // Without the cast, `any((select …))` compares with the subquery's rows instead of the array's
    // elements.
    if (cast !== null) this.append(`)${cast}`);
  }
}

/** Returns the cast if the node consists of a parameter and a cast, otherwise `null`. */
function castOf({ sqlFragments: [before, after = ''], parameters }: RawNode): string | null {
  const [parameter] = parameters;
  if (parameters.length !== 1 || parameter === undefined || !ValueNode.is(parameter)) return null;
  if (parameter.immediate === true) return null;
  return before === '' && /^::[a-z]+(\[\])?$/.test(after) ? after : null;
}

function requireText(parameter: unknown): string {
  if (typeof parameter === 'string') return parameter;
  throw new Fault(`a parameter of an export is a ${typeof parameter}, not text`);
}
