/**
 * All of a database of ours, row by row, out of one (this file, for backups) and into another (write-database.ts, for
 * restores). Both use plain SQL and COPY in text, so the versions and platforms of the two servers may differ, and `pg_dump`
 * is not needed.
 *
 * `readDatabase` opens one snapshot, held until `close()`, and locks all tables against DDL. `DatabaseWriter` fills an empty
 * database in one transaction. The `shape` of a database is JSON, and a backup keeps it. The queue is not copied, because
 * the ledger has all that is due, nor are indexes, constraints, views and functions that are not of our migrations. Tables and
 * columns that somebody added to the schema `sluice` are copied as plain ones.
 */
import pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { type Static, Type } from 'typebox';
import { Fault, TransientError } from '../../domain/errors.ts';
import { COPY_LOCK_MS } from '../../domain/limits.ts';
import { readSession } from '../session.ts';

const text = Type.String();

const CopiedTable = Type.Object({
  name: text,
  columns: Type.Array(Type.Object({ name: text, type: text })),
  /** `events` and `changes` are partitions of these; `retired_events` was one, and waits for its removal. */
  kind: Type.Enum(['table', 'events', 'changes', 'retired_events']),
  /** PostgreSQL's estimate. */
  rowsExpected: Type.Number(),
});
export type CopiedTable = Static<typeof CopiedTable>;

const CopiedSequence = Type.Object({ name: text, lastValue: text, isCalled: Type.Boolean() });
type CopiedSequence = Static<typeof CopiedSequence>;

/** Describes a database without its rows. */
export const DatabaseShape = Type.Object({
  serverVersion: text,
  /** The time of the snapshot by the server's clock. */
  at: text,
  /** The snapshot: `sluice.current_cursor()`. */
  cursor: text,
  /** The applied migrations in order. */
  migrations: Type.Array(Type.Object({ name: text, digest: text })),
  /** The tables, each after those that it refers to. */
  tables: Type.Array(CopiedTable),
  sequences: Type.Array(CopiedSequence),
});
export type DatabaseShape = Static<typeof DatabaseShape>;

export interface DatabaseSource {
  readonly shape: DatabaseShape;
  /** Reads in the snapshot. */
  readonly client: pg.Client;
  /** Yields the rows as COPY writes them in its text format; one table at a time. Equal rows of equal shape give equal bytes. */
  copyOut(table: CopiedTable): AsyncGenerator<Buffer, void>;
  close(): Promise<void>;
}

/** Tables come and go with the months of events, between being listed and being locked. */
const maxAttempts = 10;

/**
 * @throws TransientError if somebody holds a table for longer than COPY_LOCK_MS.
 * @throws Fault if it is no database of ours.
 */
export async function readDatabase(url: string): Promise<DatabaseSource> {
  const client = await connectForCopy(url);
  try {
    const shape = await beginSnapshot(client);
    return { shape, client, copyOut: (table) => copyOut(client, table), close: () => client.end() };
  } catch (error) {
    await client.end().catch(() => undefined);
    throw error;
  }
}

/** Opens a connection on which the text of a value depends on no setting of the server, and which may idle as long as we need. */
export async function connectForCopy(url: string): Promise<pg.Client> {
  const settings = {
    search_path: 'sluice,pg_catalog',
    client_encoding: 'UTF8',
    timezone: 'UTC',
    datestyle: 'ISO',
    intervalstyle: 'postgres',
    extra_float_digits: '1',
    bytea_output: 'hex',
    // Rows in the order in which they stand, whoever else reads the table.
    synchronize_seqscans: 'off',
    statement_timeout: '0',
    idle_in_transaction_session_timeout: '0',
    lock_timeout: `${COPY_LOCK_MS}`,
  };
  const client = new pg.Client({
    connectionString: url,
    application_name: 'sluice copy',
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
  });
  // A statement that waits for its answer reports a lost connection; this is for the time between two.
  client.on('error', () => undefined);
  try {
    await client.connect();
    await readSession(client, settings);
    return client;
  } catch (error) {
    await client.end();
    throw error;
  }
}

async function beginSnapshot(client: pg.Client): Promise<DatabaseShape> {
  for (let attempt = 1; attempt <= maxAttempts; attempt++) {
    const listed = (await readTables(client)).map(({ name }) => name);
    await client.query('begin isolation level repeatable read read only');
    if (await lockTables(client, listed)) {
      const shape = await readShape(client);
      if (sameNames(listed, shape.tables)) return shape;
    }
    await client.query('rollback');
  }
  throw new TransientError('tables of the database are being made and removed all the time');
}

/** Returns false if a table is gone. LOCK takes no snapshot: the next statement does. */
async function lockTables(client: pg.Client, tables: readonly string[]): Promise<boolean> {
  if (!tables.includes('event_retirements')) {
    throw new Fault('this is no database of sluice: it has no table sluice.event_retirements');
  }
  try {
    // No table of events is taken from under us; see src/postgres/stores/retirements.ts.
    await client.query('lock table sluice.event_retirements in row share mode');
    const names = tables.map((name) => `sluice.${client.escapeIdentifier(name)}`);
    await client.query(`lock table ${names.join(', ')} in access share mode`);
    return true;
  } catch (error) {
    const code = error instanceof pg.DatabaseError ? error.code : undefined;
    if (code === '42P01') return false;
    if (code !== '55P03') throw error;
    throw new TransientError(`a table of the database is locked by another session`, { cause: error });
  }
}

function sameNames(listed: readonly string[], tables: readonly CopiedTable[]): boolean {
  const names = new Set(listed);
  return names.size === tables.length && tables.every(({ name }) => names.has(name));
}

async function readShape(client: pg.Client): Promise<DatabaseShape> {
  const about = await client.query<{ version: string; at: string; cursor: string }>(
    `select current_setting('server_version') as version, statement_timestamp()::text as at, sluice.current_cursor() as cursor`,
  );
  const migrations = await client.query<{ name: string; digest: string }>(
    'select name, digest from sluice.migrations order by name',
  );
  const [row] = about.rows;
  return {
    serverVersion: row?.version ?? '',
    at: row?.at ?? '',
    cursor: row?.cursor ?? '',
    migrations: migrations.rows,
    tables: inOrder(await readTables(client), await readReferences(client)),
    sequences: await readSequences(client),
  };
}

/** Lists the tables of schema `sluice`, except that of the migrations. Generated columns are generated anew. */
async function readTables(client: pg.Client): Promise<CopiedTable[]> {
  const { rows } = await client.query<CopiedTable>(`
    select
      c.relname as name,
      case
        when i.inhparent = to_regclass('sluice.events') then 'events'
        when i.inhparent = to_regclass('sluice.changes') then 'changes'
        when c.relname ~ '^retired_events_[0-9]+$' then 'retired_events'
        else 'table'
      end as kind,
      greatest(c.reltuples, 0)::float8 as "rowsExpected",
      (
        select json_agg(json_build_object('name', a.attname, 'type', format_type(a.atttypid, a.atttypmod)) order by a.attnum)
        from pg_attribute a
        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
      ) as columns
    from pg_class c
    left join pg_inherits i on i.inhrelid = c.oid
    where c.relnamespace = 'sluice'::regnamespace and c.relkind = 'r' and c.relpersistence = 'p'
      and c.relname <> 'migrations'
    order by c.relname`);
  return rows.filter(({ columns }) => columns !== null);
}

interface Reference {
  readonly from: string;
  readonly to: string;
}

async function readReferences(client: pg.Client): Promise<Reference[]> {
  const { rows } = await client.query<Reference>(`
    select distinct f.relname as "from", t.relname as "to"
    from pg_constraint
    join pg_class f on f.oid = conrelid
    join pg_class t on t.oid = confrelid
    where contype = 'f' and conrelid <> confrelid
      and f.relnamespace = 'sluice'::regnamespace and t.relnamespace = 'sluice'::regnamespace`);
  return rows;
}

/** Sorts tables so that each comes after those that it refers to. */
export function inOrder(tables: readonly CopiedTable[], references: readonly Reference[]): CopiedTable[] {
  const ordered: CopiedTable[] = [];
  let left = [...tables];
  while (left.length > 0) {
    const waiting = new Set(left.map(({ name }) => name));
    const isFree = ({ name }: CopiedTable) =>
      !references.some(({ from, to }) => from === name && waiting.has(to));
    const free = left.filter(isFree);
    if (free.length === 0)
      throw new Fault(`tables refer to each other in a circle: ${[...waiting].join(', ')}`);
    ordered.push(...free);
    left = left.filter((table) => !free.includes(table));
  }
  return ordered;
}

/** Reads the sequences. They know no snapshot: their values are at least those that its rows took. */
async function readSequences(client: pg.Client): Promise<CopiedSequence[]> {
  const { rows } = await client.query<{ name: string }>(`
    select c.relname as name
    from pg_class c
    where c.relnamespace = 'sluice'::regnamespace and c.relkind = 'S'
    order by c.relname`);
  const sequences: CopiedSequence[] = [];
  for (const { name } of rows) {
    const found = await client.query<Omit<CopiedSequence, 'name'>>(
      `select last_value::text as "lastValue", is_called as "isCalled" from sluice.${client.escapeIdentifier(name)}`,
    );
    sequences.push(...found.rows.map((row) => ({ name, ...row })));
  }
  return sequences;
}

/** A copy has no key of a file that no load under way needs: it may outlive what destroys these. */
const neededKeys = `(
  select k.* from sluice.file_keys k where exists (
    select 1 from sluice.loads l where l.file_ref = k.file_ref and l.ended_at is null))`;

async function* copyOut(client: pg.Client, table: CopiedTable): AsyncGenerator<Buffer, void> {
  const rows = table.name === 'file_keys' ? neededKeys : copyTarget(table);
  const stream = copyTo(`copy ${rows} to stdout`);
  // A stream that was given up still hears of the end of its connection.
  stream.on('error', () => undefined);
  client.query(stream);
  yield* stream as AsyncIterable<Buffer>;
}

export function copyTarget({ name, columns }: CopiedTable): string {
  const list = columns.map((column) => pg.escapeIdentifier(column.name)).join(', ');
  return `sluice.${pg.escapeIdentifier(name)} (${list})`;
}
