// The other end of read-database.ts: a database that is to hold what another held.
import pg from 'pg';
import { type CopyStreamQuery, from as copyFrom } from 'pg-copy-streams';
import { Fault } from '../domain/errors.ts';
import { applyMigrations, type Migration, readMigrations } from '../postgres/migrate.ts';
import { type CopiedTable, copyTarget, type DatabaseShape } from './read-database.ts';

/** The database that is to be copied is of a version of sluice that this one cannot read. */
export class UnknownSchema extends Error {
  override readonly name = 'UnknownSchema';
}

/**
 * Makes the tables, empty, as they were in the source: its migrations and no later ones. In a transaction of the caller's.
 * @throws UnknownSchema if the source has migrations that this version does not know, or with another text.
 */
export async function prepareTables(client: pg.ClientBase, shape: DatabaseShape): Promise<void> {
  await applyMigrations(client, checkMigrations(shape, await readMigrations()));
  for (const table of shape.tables) await prepareTable(client, table);
}

/** Those that the source had. */
export function checkMigrations(
  { migrations }: Pick<DatabaseShape, 'migrations'>,
  known: readonly Migration[],
): Migration[] {
  const ours = new Map(known.map((migration) => [migration.name, migration]));
  return migrations.map(({ name, digest }) => {
    const migration = ours.get(name);
    if (migration === undefined)
      throw new UnknownSchema(`its migration ${name} is not known to this version of sluice`);
    if (migration.digest !== digest)
      throw new UnknownSchema(`its migration ${name} has another text in this version of sluice`);
    return migration;
  });
}

async function prepareTable(client: pg.ClientBase, table: CopiedTable): Promise<void> {
  const name = pg.escapeIdentifier(table.name);
  if (table.kind === 'events') await preparePartition(client, table.name);
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

async function preparePartition(client: pg.ClientBase, name: string): Promise<void> {
  const month = /^events_(\d{4,})_(\d\d)$/.exec(name);
  if (month === null) throw new Fault(`the partition ${name} of the events is of no month`);
  await client.query('select sluice.ensure_events_partition($1)', [`${month[1]}-${month[2]}-15 00:00:00+00`]);
}

/** One that somebody added. A column of the events stands in all of their partitions. */
async function addColumn(
  client: pg.ClientBase,
  { name, kind }: CopiedTable,
  column: CopiedTable['columns'][number],
): Promise<void> {
  // Asked of the server, so that what stands in a file does not become part of a statement.
  const { rows } = await client.query<{ type: string | null }>(
    'select format_type(to_regtype($1), null) as type',
    [column.type],
  );
  const type = rows[0]?.type;
  if (!type || type === '-')
    throw new Fault(`there is no type ${column.type}, of the column ${column.name} of ${name}`);
  const table = kind === 'events' ? 'events' : pg.escapeIdentifier(name);
  await client.query(
    `alter table sluice.${table} add column if not exists ${pg.escapeIdentifier(column.name)} ${type}`,
  );
}

/** Of smaller tables the indexes cost nothing either way. */
const largeRows = 10_000;

/**
 * Takes the indexes off tables that will be large; what it returns makes them anew, when all rows are there. Sorting them then takes
 * less than half of the time that they take to grow row by row (docs/decisions/backup.md). In the transaction of the rows, or a
 * database without them would be seen. Tables that others refer to keep theirs.
 */
export async function dropIndexes(
  client: pg.ClientBase,
  { tables }: DatabaseShape,
  leastRows = largeRows,
): Promise<string[]> {
  const expected = new Map<string, number>();
  for (const { name, kind, rowsExpected } of tables) {
    const root = kind === 'events' ? 'events' : name;
    if (kind !== 'retired_events') expected.set(root, (expected.get(root) ?? 0) + rowsExpected);
  }
  const large = [...expected].flatMap(([name, rows]) => (rows >= leastRows ? [name] : []));
  const { rows } = await client.query<{ drop: string; make: string }>(
    `select
       case when p.oid is null then format('drop index %s', i.indexrelid::regclass)
         else format('alter table %s drop constraint %I', c.oid::regclass, p.conname) end as drop,
       case when p.oid is null then replace(pg_get_indexdef(i.indexrelid), ' ON ONLY ', ' ON ')
         else format('alter table %s add constraint %I %s', c.oid::regclass, p.conname, pg_get_constraintdef(p.oid)) end as make
     from pg_index i
     join pg_class c on c.oid = i.indrelid
     left join pg_constraint p on p.conindid = i.indexrelid and p.conrelid = c.oid
     where c.relnamespace = 'sluice'::regnamespace and c.relname = any($1) and c.relkind in ('r', 'p')
       and (p.oid is null or p.contype in ('p', 'u'))
       and not exists (select 1 from pg_constraint where contype = 'f' and confrelid = c.oid)
     order by i.indisprimary desc, i.indexrelid`,
    [large],
  );
  for (const { drop } of rows) await client.query(drop);
  return rows.map(({ make }) => make);
}

/** What `dropIndexes` took off. */
export async function makeIndexes(client: pg.ClientBase, statements: readonly string[]): Promise<void> {
  for (const statement of statements) await client.query(statement);
}

/** Takes what `copyOut` gave, and has its `rowCount` in the end; `frozen`: the table was made, or emptied, by the transaction under way. */
export function copyIn(client: pg.ClientBase, table: CopiedTable, { frozen = false } = {}): CopyStreamQuery {
  return client.query(copyFrom(`copy ${copyTarget(table)} from stdin${frozen ? ' with (freeze)' : ''}`));
}

/**
 * When all rows are there: sequences go on where they were, the source's schema becomes ours, and what held on the other
 * server only holds no more. In a transaction of the caller's; again does no harm.
 */
export async function finishTables(client: pg.ClientBase, shape: DatabaseShape): Promise<void> {
  for (const { name, lastValue, isCalled } of shape.sequences) {
    await client.query('select setval(to_regclass($1), $2, $3) where to_regclass($1) is not null', [
      `sluice.${pg.escapeIdentifier(name)}`,
      lastValue,
      isCalled,
    ]);
  }
  await applyMigrations(client, await readMigrations());
  await forgetServer(client);
}

async function forgetServer(client: pg.ClientBase): Promise<void> {
  // Whoever had them claimed works on the other server; the queue there was notified.
  await client.query(`
    update sluice.tasks
    set lease_until = null, waiting_since = now(), notified_at = null
    where lease_until is not null or notified_at is not null`);
  await client.query('delete from sluice.workers');
  // Transactions are counted anew, and all rows are of this one: what changed since the plan is told by the time alone, which
  // may take a row for changed that the plan saw, and never the other way round.
  await client.query(`update sluice.loads set plan_horizon = '0' where plan_horizon is not null`);
}
