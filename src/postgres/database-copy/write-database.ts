// The other end of read-database.ts: fills a database with what another one held.
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { Fault } from '../../domain/errors.ts';
import { applyMigrations, lockSchema, migrate, readMigrations } from '../migrate.ts';
import { type CopiedTable, copyTarget, type DatabaseShape } from './read-database.ts';

/**
 * Fills a database that has no schema `sluice` yet with the tables and rows of another. Everything happens in one transaction of
 * `client`, so nobody sees a part of it, and a process that is killed leaves nothing behind.
 */
export class DatabaseWriter {
  readonly #client: pg.Client;
  readonly #shape: DatabaseShape;
  /** Statements that make the dropped indexes. */
  readonly #indexes: readonly string[];

  private constructor(client: pg.Client, shape: DatabaseShape, indexes: readonly string[]) {
    this.#client = client;
    this.#shape = shape;
    this.#indexes = indexes;
  }

  /** Makes the tables as they were in the source. @throws Fault if there is a schema already, or the source is of an unknown version. */
  static async begin(
    client: pg.Client,
    shape: DatabaseShape,
    leastRows = largeRows,
  ): Promise<DatabaseWriter> {
    await client.query('begin');
    // A service that starts on the database waits until it is complete.
    await lockSchema(client);
    if (await hasSchema(client)) throw new Fault('the database has a schema sluice already');
    const problem = await findSchemaProblem(shape);
    if (problem !== null) throw new Fault(problem);
    const names = new Set(shape.migrations.map(({ name }) => name));
    await applyMigrations(
      client,
      (await readMigrations()).filter(({ name }) => names.has(name)),
    );
    // The migrations make its row, and the copy brings that of the source.
    await client.query('delete from sluice.change_log');
    for (const table of shape.tables) await prepareTable(client, table);
    return new DatabaseWriter(client, shape, await dropIndexes(client, shape, leastRows));
  }

  /** Writes all rows of a table, as `copyOut` gave them, and returns how many there are. */
  async write(table: CopiedTable, rows: AsyncIterable<Buffer>): Promise<number> {
    const copy = this.#client.query(copyFrom(`copy ${copyTarget(table)} from stdin with (freeze)`));
    await pipeline(rows, copy);
    return copy.rowCount;
  }

  /** Makes the indexes, applies later migrations and commits. */
  async finish(): Promise<void> {
    const client = this.#client;
    for (const statement of this.#indexes) await client.query(statement);
    for (const { name, lastValue, isCalled } of this.#shape.sequences) {
      await client.query('select setval(to_regclass($1), $2, $3) where to_regclass($1) is not null', [
        `sluice.${pg.escapeIdentifier(name)}`,
        lastValue,
        isCalled,
      ]);
    }
    await client.query('select sluice.raise_positions(pg_snapshot_xmax($1::pg_snapshot)::text::bigint)', [
      this.#shape.cursor,
    ]);
    await applyMigrations(client, await readMigrations());
    await forgetServer(client);
    await client.query('commit');
    // Fits the indexes to this server, which may be of another version.
    await migrate(client);
    await client.query('analyze');
  }
}

/** Tells whether a database has, or had, a sluice on it. */
export async function hasSchema(client: pg.ClientBase): Promise<boolean> {
  const { rows } = await client.query<{ has: boolean }>(
    `select to_regnamespace('sluice') is not null as has`,
  );
  return rows[0]?.has === true;
}

/** Returns why this version cannot read the source, or null. */
export async function findSchemaProblem({
  migrations,
}: Pick<DatabaseShape, 'migrations'>): Promise<string | null> {
  const ours = new Map((await readMigrations()).map(({ name, digest }) => [name, digest]));
  for (const { name, digest } of migrations) {
    if (!ours.has(name)) return `its migration ${name} is not known to this version of sluice`;
    if (ours.get(name) !== digest) return `its migration ${name} has another text in this version of sluice`;
  }
  return null;
}

async function prepareTable(client: pg.ClientBase, table: CopiedTable): Promise<void> {
  const name = pg.escapeIdentifier(table.name);
  if (table.kind === 'events' || table.kind === 'changes') await preparePartition(client, table);
  else if (table.kind === 'retired_events')
    await client.query(`create table if not exists sluice.${name} (like sluice.events including all)`);
  else await client.query(`create table if not exists sluice.${name} ()`);
  const { rows } = await client.query<{ name: string }>(
    `select attname as name from pg_attribute
     where attrelid = to_regclass($1) and attnum > 0 and not attisdropped`,
    [`sluice.${name}`],
  );
  const there = new Set(rows.map((row) => row.name));
  for (const column of table.columns) {
    if (!there.has(column.name)) await addColumn(client, table, column);
  }
}

/** Makes the partition of a month of events, or of a day of changes. */
async function preparePartition(client: pg.ClientBase, { name, kind }: CopiedTable): Promise<void> {
  if (name === 'changes_default') return;
  const [, year, month, day = '15'] = /^(?:events|changes)_(\d{4,})_(\d\d)(?:_(\d\d))?$/.exec(name) ?? [];
  if (year === undefined) throw new Fault(`the partition ${name} of the ${kind} is of no time`);
  await client.query(`select sluice.ensure_${kind}_partition($1)`, [`${year}-${month}-${day} 00:00:00+00`]);
}

/** Adds a column that somebody added to the source. A column of events and of changes stands in all of their partitions. */
async function addColumn(
  client: pg.ClientBase,
  { name, kind }: CopiedTable,
  column: CopiedTable['columns'][number],
): Promise<void> {
  // The server gives the name of the type, so that no text of a file becomes part of a statement.
  const { rows } = await client.query<{ type: string | null }>(
    'select format_type(to_regtype($1), null) as type',
    [column.type],
  );
  const type = rows[0]?.type;
  if (!type || type === '-')
    throw new Fault(`there is no type ${column.type}, of the column ${column.name} of ${name}`);
  const table = kind === 'events' || kind === 'changes' ? kind : pg.escapeIdentifier(name);
  await client.query(
    `alter table sluice.${table} add column if not exists ${pg.escapeIdentifier(column.name)} ${type}`,
  );
}

/** Tables with fewer rows keep their indexes while they are written. */
const largeRows = 10_000;

/**
 * Drops the indexes of tables that will be large, and returns the statements that make them again when all rows are there:
 * sorting them then takes less than half as long as growing them row by row (docs/decisions/backup.md). Tables that others
 * refer to keep theirs.
 */
async function dropIndexes(
  client: pg.ClientBase,
  { tables }: DatabaseShape,
  leastRows: number,
): Promise<string[]> {
  const expected = new Map<string, number>();
  for (const { name, kind, rowsExpected } of tables) {
    const root = kind === 'events' || kind === 'changes' ? kind : name;
    if (kind !== 'retired_events') expected.set(root, (expected.get(root) ?? 0) + rowsExpected);
  }
  const large = [...expected].flatMap(([name, rows]) => (rows >= leastRows ? [name] : []));
  const { rows } = await client.query<{ drop: string; make: string }>(
    `select
       case when p.oid is null then format('drop index %s', i.indexrelid::regclass)
         else format('alter table %s drop constraint %I', c.oid::regclass, p.conname) end as drop,
       case when p.oid is null then replace(pg_get_indexdef(i.indexrelid), ' ON ONLY ', ' ON ')
         else format('alter table %s add constraint %I %s', c.oid::regclass, p.conname, pg_get_constraintdef(p.oid))
           || coalesce(' with (' || array_to_string(x.reloptions, ', ') || ')', '') end as make
     from pg_index i
     join pg_class x on x.oid = i.indexrelid
     join pg_class c on c.oid = i.indrelid
     left join pg_constraint p on p.conindid = i.indexrelid and p.conrelid = c.oid
     where c.relnamespace = 'sluice'::regnamespace and c.relname = any($1) and c.relkind in ('r', 'p')
       and (p.oid is null or p.contype in ('p', 'u'))
       and not exists (select 1 from pg_constraint where contype = 'f' and confrelid = c.oid)
       and not exists (select 1 from pg_inherits where inhrelid = i.indexrelid)
     order by i.indisprimary desc, i.indexrelid`,
    [large],
  );
  for (const { drop } of rows) await client.query(drop);
  return rows.map(({ make }) => make);
}

/** Removes what held on the other server only. */
async function forgetServer(client: pg.ClientBase): Promise<void> {
  // Leases belong to workers of the other server, and its queue was notified, not this one.
  await client.query(`
    update sluice.tasks
    set lease_until = null, waiting_since = now(), notified_at = null
    where lease_until is not null or notified_at is not null`);
  await client.query('delete from sluice.workers');
}
