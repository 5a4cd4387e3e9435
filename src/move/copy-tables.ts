// The rows of a move: each table in a transaction of its own, which ends only if both sides have the same rows.
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import type { CopiedTable, DatabaseSource } from '../database-copy/read-database.ts';
import { copyIn, prepareTables } from '../database-copy/write-database.ts';
import { Fault } from '../domain/errors.ts';
import {
  type CopiedContent,
  forgetTables,
  readRecordedTables,
  recordTable,
} from '../postgres/stores/moves.ts';

export interface CopyingSides {
  /** Nobody writes to it meanwhile. */
  readonly source: DatabaseSource;
  /** Another connection to the source: what it holds is counted while it is copied. */
  readonly witness: pg.Client;
  readonly target: pg.Client;
}

export interface MovedTable extends CopiedContent {
  readonly name: string;
  /** Of COPY's text; 0 if an earlier run copied it. */
  readonly bytes: number;
  readonly seconds: number;
  /** By an earlier run; compared again. */
  readonly earlier: boolean;
}

export interface CopyProgress {
  /** So far of the table under way. */
  onRows(table: CopiedTable, rows: number, bytes: number): void;
  onTable(table: MovedTable): void;
}

/**
 * Copies what is not there yet, in the order of the references. What an earlier run copied is compared anew on both sides; if
 * any of it differs, because a service ran on one of them since, all is copied again.
 * @throws Fault if what arrived is not what was sent.
 */
export async function copyTables(
  sides: CopyingSides,
  progress: CopyProgress,
  signal: AbortSignal,
): Promise<MovedTable[]> {
  const { source, target } = sides;
  const { tables } = source.shape;
  await inTransaction(target, () => prepareTables(target, source.shape));
  const earlier = await findEarlier(sides, signal);
  const moved: MovedTable[] = [];
  for (const table of tables) {
    signal.throwIfAborted();
    const done = earlier.get(table.name) ?? (await copyTable(sides, table, progress, signal));
    moved.push(done);
    progress.onTable(done);
  }
  return moved;
}

async function findEarlier(sides: CopyingSides, signal: AbortSignal): Promise<Map<string, MovedTable>> {
  const { source, target } = sides;
  const recorded = await readRecordedTables(target);
  const found = new Map<string, MovedTable>();
  for (const table of source.shape.tables) {
    const content = recorded.get(table.name);
    if (content === undefined) continue;
    signal.throwIfAborted();
    const startedAt = performance.now();
    const both = await Promise.all([readContent(sides.witness, table), readContent(target, table)]);
    if (!both.every((each) => isSame(each, content))) break;
    const seconds = (performance.now() - startedAt) / 1000;
    found.set(table.name, { name: table.name, ...content, bytes: 0, seconds, earlier: true });
  }
  if (found.size === recorded.size) return found;
  await beginAnew(sides);
  return new Map();
}

async function beginAnew({ source, target }: CopyingSides): Promise<void> {
  await inTransaction(target, async () => {
    await forgetTables(target);
    await target.query('drop schema sluice cascade');
    await prepareTables(target, source.shape);
  });
}

async function copyTable(
  { source, witness, target }: CopyingSides,
  table: CopiedTable,
  progress: CopyProgress,
  signal: AbortSignal,
): Promise<MovedTable> {
  const startedAt = performance.now();
  let bytes = 0;
  let rows = 0;
  const counted = async function* (chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of chunks) {
      bytes += chunk.length;
      rows += countLines(chunk);
      progress.onRows(table, rows, bytes);
      yield chunk;
    }
  };
  return inTransaction(target, async () => {
    const sent = readContent(witness, table);
    // Its failure is that of the promise below, also if the COPY fails first.
    sent.catch(() => undefined);
    const frozen = await emptyForFreeze(target, table);
    await pipeline(source.copyOut(table), counted, copyIn(target, table, { frozen }), { signal });
    const [was, is] = await Promise.all([sent, readContent(target, table)]);
    if (!isSame(was, is)) {
      throw new Fault(
        `${table.name} has ${is.rows} rows with the hash ${is.hash} in the target, and ${was.rows} with ${was.hash} in the source: nothing of it was kept`,
      );
    }
    await recordTable(target, table.name, is);
    return {
      name: table.name,
      ...is,
      bytes,
      seconds: (performance.now() - startedAt) / 1000,
      earlier: false,
    };
  });
}

/**
 * A table that is emptied by the transaction that fills it takes its rows as they will stay: vacuum does not have to visit
 * them again. One that others refer to cannot be emptied so; those are small.
 */
async function emptyForFreeze(target: pg.Client, { name }: CopiedTable): Promise<boolean> {
  const table = `sluice.${pg.escapeIdentifier(name)}`;
  const { rows } = await target.query<{ isReferred: boolean }>(
    `select exists (select 1 from pg_constraint where contype = 'f' and confrelid = to_regclass($1)) as "isReferred"`,
    [table],
  );
  if (rows[0]?.isReferred !== false) return false;
  await target.query(`truncate ${table}`);
  return true;
}

/** Two numbers for one row, as good as any of 128 bits against chance; of all rows their sums, whatever the order. */
const seeds = [0, 5_872_026_110_721] as const;

/**
 * How many rows a table has, and what they are. The text of a row is the same on every version of PostgreSQL, given the
 * settings of `connectForCopy`.
 */
async function readContent(client: pg.Client, { name, columns }: CopiedTable): Promise<CopiedContent> {
  const list = columns.map((column) => pg.escapeIdentifier(column.name)).join(', ');
  const { rows } = await client.query<{ rows: string; hash: string }>(
    `select
       count(*)::text as rows,
       concat_ws(':', ${seeds.map((seed) => `coalesce(sum(hashtextextended(line, ${seed})), 0)`).join(', ')}) as hash
     from (
       select row::text collate "C" as line
       from (select ${list} from sluice.${pg.escapeIdentifier(name)}) as row
       offset 0
     ) lines`,
  );
  const [row] = rows;
  if (row === undefined) throw new Fault('an aggregate gave no row');
  return { rows: Number(row.rows), hash: row.hash };
}

function isSame(one: CopiedContent, other: CopiedContent): boolean {
  return one.rows === other.rows && one.hash === other.hash;
}

const LF = 0x0a;

/** Each line of COPY's text is a row: line ends within values are escaped. */
function countLines(bytes: Buffer): number {
  let lines = 0;
  for (let at = bytes.indexOf(LF); at !== -1; at = bytes.indexOf(LF, at + 1)) lines++;
  return lines;
}

/** On the client's connection, which is not given back: if it fails, neither is it used again. */
export async function inTransaction<T>(client: pg.Client, work: () => Promise<T>): Promise<T> {
  await client.query('begin');
  const result = await work();
  await client.query('commit');
  return result;
}
