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

export type CopyFormat = 'csv' | 'lines';

/** Stands for a null in CSV, so that it is quoted where it is a text. */
export const copyNull = '\u0001';

/** `lines`: one column as it is. Quote and delimiter are control characters, which JSON text cannot hold, so nothing is ever quoted. */
const options: Readonly<Record<CopyFormat, string>> = {
  csv: `format csv, null E'\\x01'`,
  lines: `format csv, quote E'\\x01', delimiter E'\\x02'`,
};

/** Yields the rows of a select, and returns PostgreSQL's count of them. The client must be in a transaction. */
export async function* copyOut(
  client: pg.PoolClient,
  select: CopySelect,
  format: CopyFormat,
  signal: AbortSignal,
): AsyncGenerator<Buffer, number> {
  await setParameters(client, select);
  signal.throwIfAborted();
  const stream = copyTo(`copy (${select.text}) to stdout (${options[format]})`);
  // When it has been given up, its connection's end is still told to it.
  stream.on('error', () => undefined);
  client.query(stream);
  addAbortSignal(signal, stream);
  try {
    yield* stream as AsyncIterable<Buffer>;
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
  // The stream ends before the message that has the count; one round trip later it is there.
  await client.query('');
  return stream.rowCount;
}

/** Returns the planner's estimate of the rows. */
export async function estimateRows(client: pg.PoolClient, select: CopySelect): Promise<number> {
  await setParameters(client, select);
  const { rows } = await client.query<{ 'QUERY PLAN': readonly { Plan: { 'Plan Rows': number } }[] }>(
    `explain (format json) ${select.text}`,
  );
  const estimate = rows[0]?.['QUERY PLAN'][0]?.Plan['Plan Rows'];
  if (estimate === undefined) throw new Fault('explain said nothing of rows');
  return estimate;
}

/*
 * COPY takes no parameters, and nothing that a caller sent may become part of a statement's text. So each parameter of
 * the query becomes a setting that lives as long as the transaction: its value goes there bound (`setParameters`), and
 * where the compiler would write `$3` it writes `current_setting('sluice.p3')`. It does so while it compiles: no text is
 * searched or replaced. Settings are text, and so must parameters be; the type stands beside them, in the query.
 *
 * current_setting is stable: the planner estimates with the value, and indexes and partitions are found by it. But where
 * no index uses it, it would be looked up, and cast, for every row. So a parameter that makes up an expression of its own
 * together with its cast, as in sql`${value}::text[]`, is put into a subquery, which runs once.
 */
const prefix = 'sluice.p';
/** Characters beyond which writing a value as part of an array costs more than a round trip of its own. */
const longText = 16 * 1024;

/** A select that COPY can run, once its parameters are set. */
export interface CopySelect {
  readonly text: string;
  readonly parameters: readonly string[];
}

export interface Compilable {
  toOperationNode(): RootOperationNode;
}

/** @throws Fault if a parameter is not text. */
export function compileForCopy(query: Compilable): CopySelect {
  const compiled = new SettingsCompiler().compileQuery(query.toOperationNode(), createQueryId());
  return { text: compiled.sql, parameters: compiled.parameters.map(requireText) };
}

/** Until the end of the transaction, or until those of another select are set. */
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
  /** Called once per parameter, after it was added. */
  protected override getCurrentParameterPlaceholder(): string {
    return `current_setting('${prefix}${this.numParameters}')`;
  }

  protected override visitRaw(node: RawNode): void {
    const cast = castOf(node);
    if (cast !== null) this.append('(select ');
    super.visitRaw(node);
    // Once more on the outside, or `any((select …))` would go through the rows of the subquery.
    if (cast !== null) this.append(`)${cast}`);
  }
}

/** The cast, if the node is a parameter with its cast and nothing else. */
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
