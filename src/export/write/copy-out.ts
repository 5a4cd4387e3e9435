import { addAbortSignal } from 'node:stream';
import type pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { Fault } from '../../domain/errors.ts';
import { type CopySelect, setParameters } from './copy-select.ts';

/** How COPY is to write rows: one of two texts of ours. */
export type CopyFormat = 'csv' | 'lines';

/**
 * `lines`: one column, which comes out as it is. For it to be CSV that never needs a quote, quote and delimiter are two
 * control characters, which JSON text cannot hold. (The text format would double its backslashes.)
 */
const options: Readonly<Record<CopyFormat, string>> = {
  csv: `format csv, null E'\\x01'`,
  lines: `format csv, quote E'\\x01', delimiter E'\\x02'`,
};

/** What a select yields, and in the end how many rows Postgres says it was. The client must be in a transaction. */
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

/** How many rows the planner expects. */
export async function estimateRows(client: pg.PoolClient, select: CopySelect): Promise<number> {
  await setParameters(client, select);
  const { rows } = await client.query<{ 'QUERY PLAN': readonly { Plan: { 'Plan Rows': number } }[] }>(
    `explain (format json) ${select.text}`,
  );
  const estimate = rows[0]?.['QUERY PLAN'][0]?.Plan['Plan Rows'];
  if (estimate === undefined) throw new Fault('explain said nothing of rows');
  return estimate;
}
