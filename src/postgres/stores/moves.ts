// The progress of a move, in the database that it goes to, written with what was done. While it is there, the
// database is not complete, and no service starts on it.
import type { ClientBase } from 'pg';
import { Fault } from '../../domain/errors.ts';

/** The content of a table, the same on both sides. */
export interface CopiedContent {
  readonly rows: number;
  /** Sums of two hashes of each row, which do not depend on their order. */
  readonly hash: string;
}

/** Which database this is, and of which data: the same as long as they live. */
export async function readIdentity(client: ClientBase): Promise<string> {
  const { rows } = await client.query<{ id: string }>(`
    select system_identifier || '/' || oid as id
    from pg_control_system(), pg_database
    where datname = current_database()`);
  const [row] = rows;
  if (row === undefined) throw new Fault('the server does not say which it is');
  return row.id;
}

/** Begins a move, or goes on with it. From here on the database is not complete. */
export async function beginMove(client: ClientBase, source: string): Promise<void> {
  await client.query('begin');
  await client.query(`
    create schema if not exists sluice_move;
    create table if not exists sluice_move.move (
      singleton boolean primary key default true check (singleton),
      source text not null,
      began_at timestamptz not null default now()
    );
    create table if not exists sluice_move.tables (
      name text primary key,
      rows bigint not null,
      hash text not null,
      copied_at timestamptz not null default now()
    )`);
  await client.query('insert into sluice_move.move (source) values ($1) on conflict do nothing', [source]);
  const { rows } = await client.query<{ source: string }>('select source from sluice_move.move');
  if (rows[0]?.source !== source) throw new Fault('the database is being filled by another move');
  await client.query('commit');
}

/** With the rows of the table, in one transaction. */
export async function recordTable(client: ClientBase, name: string, content: CopiedContent): Promise<void> {
  await client.query('insert into sluice_move.tables (name, rows, hash) values ($1, $2, $3)', [
    name,
    content.rows,
    content.hash,
  ]);
}

export async function readRecordedTables(client: ClientBase): Promise<Map<string, CopiedContent>> {
  const { rows } = await client.query<{ name: string; rows: string; hash: string }>(
    'select name, rows, hash from sluice_move.tables',
  );
  return new Map(rows.map(({ name, rows: count, hash }) => [name, { rows: Number(count), hash }]));
}

/** All that was copied is to be copied again. */
export async function forgetTables(client: ClientBase): Promise<void> {
  await client.query('delete from sluice_move.tables');
}

/** The database is complete, and what kept services away is gone. In the caller's transaction. */
export async function endMove(client: ClientBase): Promise<void> {
  await client.query('drop schema sluice_move cascade');
}

/** Tells whether a move to the database was begun and not ended. */
export async function isBeingMoved(client: ClientBase): Promise<boolean> {
  const { rows } = await client.query<{ t: string | null }>(
    "select to_regclass('sluice_move.move')::text as t",
  );
  return (rows[0]?.t ?? null) !== null;
}
