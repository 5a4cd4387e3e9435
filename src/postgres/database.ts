// Connects to the database, and runs transactions and statements. A noun's statements are in its
// folder's `store.ts`. `schema.ts` is generated from sql/migrations.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type DeleteQueryBuilder,
  type DeleteResult,
  Kysely,
  PostgresDialect,
  type SelectQueryBuilder,
  type SelectType,
  sql,
  type UpdateQueryBuilder,
  type UpdateResult,
} from 'kysely';
import type pg from 'pg';
import { Fault } from '../base/errors.ts';
import { packageRoot } from '../base/package-root.ts';
import { pollUntil, retry } from '../base/retry.ts';
import { type CamelCase, snake, type Tables } from './columns.ts';
import { isLockTimeout } from './sqlstate.ts';

const WRITERS_POLL_MS = 20;
const LOCK_TRIES = 10;
const LOCK_PAUSE_MS = 250;

export type Database = Kysely<Tables>;

type Lender = Pick<pg.Pool, 'connect'>;

export function createDatabase(pool: Lender): Database {
  const database = new Kysely<Tables>({ dialect: new PostgresDialect({ pool: pool as pg.Pool }) });
  lenders.set(database, pool);
  return database;
}

const lenders = new WeakMap<Database, Lender>();
const preparing = new WeakMap<Database, Database>();

/**
 * The same database, but each statement is planned once per connection instead of at every call.
 * Use it only for statements with a fixed text, whose plan depends neither on values nor on
 * temporary tables.
 */
export function prepared(database: Database): Database {
  const existing = preparing.get(database);
  if (existing !== undefined) return existing;
  const lender = lenders.get(database);
  if (lender === undefined) return database;
  const same = createDatabase({ connect: async () => naming(await lender.connect()) } as Lender);
  preparing.set(database, same);
  preparing.set(same, same);
  return same;
}

function naming(client: pg.PoolClient): pg.PoolClient {
  const query = (text: string, values: unknown[]) => client.query({ name: nameOf(text), text, values });
  return { query, release: () => client.release() } as unknown as pg.PoolClient;
}

/** Names of statements by their text. The number of texts is fixed. */
const names = new Map<string, string>();

function nameOf(text: string): string {
  const name = names.get(text) ?? createHash('sha256').update(text).digest('base64url').slice(0, 20);
  names.set(text, name);
  return name;
}

export function escapeLike(text: string): string {
  return text.replace(/[\\%_]/g, '\\$&');
}

const bound = new WeakMap<pg.PoolClient, Database>();

/**
 * Returns a database for query builders, whose statements run in the client's transaction and see
 * its temporary tables.
 */
export function databaseOn(client: pg.PoolClient): Database {
  const existing = bound.get(client);
  if (existing !== undefined) return existing;
  const shared = { query: client.query.bind(client), release: () => undefined } as unknown as pg.PoolClient;
  const database = createDatabase({ connect: async () => shared } as Lender);
  bound.set(client, database);
  return database;
}

type Values<T extends keyof Tables> = {
  readonly [C in keyof Tables[T] & string as CamelCase<C>]?: NonNullable<SelectType<Tables[T][C]>>;
};

type Select<T extends keyof Tables> = SelectQueryBuilder<Tables, T, Record<never, never>>;
type Update<T extends keyof Tables> = UpdateQueryBuilder<Tables, T, T, UpdateResult>;
type Delete<T extends keyof Tables> = DeleteQueryBuilder<Tables, T, DeleteResult>;

export function selectWhere<T extends keyof Tables>(db: Database, table: T, values: Values<T>): Select<T> {
  return matching(db.selectFrom(table), values);
}

export function updateWhere<T extends keyof Tables>(db: Database, table: T, values: Values<T>): Update<T> {
  return matching(db.updateTable(table), values);
}

export function deleteWhere<T extends keyof Tables>(db: Database, table: T, values: Values<T>): Delete<T> {
  return matching(db.deleteFrom(table), values);
}

function matching<Q>(query: unknown, values: object): Q {
  const builder = query as Select<keyof Tables>;
  return Object.entries(snake(values)).reduce(
    (next, [column, value]) => next.where(column as never, '=', value as never),
    builder,
  ) as Q;
}

type Statement = Parameters<typeof sql>;

/** Usage: rowsOf<{ id: string }>(db)`select …`. */
export function rowsOf<Row>(db: Database): (...statement: Statement) => Promise<Row[]> {
  return async (...statement) => (await sql<Row>(...statement).execute(db)).rows;
}

/**
 * Returns the only row of a statement.
 * @throws Fault if there is no row
 */
export function rowOf<Row>(db: Database): (...statement: Statement) => Promise<Row> {
  return async (...statement) => {
    const [row] = await rowsOf<Row>(db)(...statement);
    if (row === undefined) throw new Fault('a statement gave no row');
    return row;
  };
}

export function firstRow<Row>(db: Database): (...statement: Statement) => Promise<Row | null> {
  return async (...statement) => (await rowsOf<Row>(db)(...statement))[0] ?? null;
}

export function hasRows(db: Database): (...statement: Statement) => Promise<boolean> {
  return async (...statement) => (await rowsOf(db)(...statement)).length > 0;
}

export function columnOf<T>(db: Database): (...statement: Statement) => Promise<T[]> {
  return async (...statement) =>
    (await rowsOf<Record<string, T>>(db)(...statement)).map((row) => Object.values(row)[0] as T);
}

export function findValue<T>(db: Database): (...statement: Statement) => Promise<T | null> {
  return async (...statement) => (await columnOf<T>(db)(...statement))[0] ?? null;
}

export function countOf(db: Database): (...statement: Statement) => Promise<number> {
  return async (...statement) => (await findValue<number>(db)(...statement)) ?? 0;
}

export function changedBy(db: Database): (...statement: Statement) => Promise<number> {
  return async (...statement) => Number((await sql(...statement).execute(db)).numAffectedRows ?? 0);
}

export function isTrue(db: Database): (...statement: Statement) => Promise<boolean> {
  return async (...statement) => (await findValue<boolean>(db)(...statement)) === true;
}

/**
 * Statement from a file in sql/queries. Each connection prepares it once, under the file's name.
 */
export interface QueryFile {
  readonly name: string;
  readonly text: string;
}

export function readQuery(name: string): QueryFile {
  return { name, text: readFileSync(join(packageRoot, 'sql', 'queries', `${name}.sql`), 'utf8') };
}

export async function runQuery(
  connection: pg.Pool | pg.PoolClient,
  { name, text }: QueryFile,
  values: unknown[],
): Promise<void> {
  await connection.query({ name, text, values });
}

export async function queryRows<R extends pg.QueryResultRow>(
  connection: pg.Pool | pg.PoolClient,
  { name, text }: QueryFile,
  values: readonly unknown[],
): Promise<R[]> {
  const { rows } = await connection.query<R>({ name, text, values: [...values] });
  return rows;
}

export interface Transaction {
  readonly client: pg.PoolClient;
  readonly db: Database;
}

/** PostgreSQL's settings, by name. They apply until the transaction ends. */
export type LocalSettings = Readonly<Record<string, string>>;

/**
 * Runs `work` in a transaction. The settings are sent with the statement that begins it, so they
 * cost no round trip.
 */
export async function inTransaction<T>(
  pool: pg.Pool,
  work: (transaction: Transaction) => Promise<T>,
  settings: LocalSettings = {},
): Promise<T> {
  return onConnection(pool, async (client, discard) => {
    try {
      const set = Object.entries(settings).map(
        ([name, value]) => `set local ${name} = ${client.escapeLiteral(value)}`,
      );
      await client.query(['begin', ...set].join('; '));
      const result = await work({ client, db: databaseOn(client) });
      await client.query('commit');
      return result;
    } catch (error) {
      await client.query('rollback').catch(discard);
      throw error;
    }
  });
}

export async function checkConstraints(client: pg.PoolClient): Promise<void> {
  await client.query('set constraints all immediate');
}

type Attempt<T> = { readonly result: T } | { readonly error: Error };

/**
 * Runs `work` after a savepoint. If `work` throws an error that `isExpected` accepts, rolls back to
 * the savepoint and returns the error. If `rollBack` is true, also rolls back after success.
 */
export async function inSavepoint<T>(
  client: pg.PoolClient,
  work: () => Promise<T>,
  isExpected: (error: Error) => boolean,
  { rollBack = false } = {},
): Promise<Attempt<T>> {
  const rollback = 'rollback to savepoint attempt; release savepoint attempt';
  await client.query('savepoint attempt');
  try {
    const result = await work();
    await client.query(rollBack ? rollback : 'release savepoint attempt');
    return { result };
  } catch (error) {
    if (!(error instanceof Error && isExpected(error))) throw error;
    await client.query(rollback);
    return { error };
  }
}

/** The pool does not reuse a connection that was lost or for which `work` called `discard`. */
export async function onConnection<T>(
  pool: pg.Pool,
  work: (client: pg.PoolClient, discard: (error: Error) => void) => Promise<T>,
): Promise<T> {
  const client = await pool.connect();
  let broken: Error | undefined;
  const discard = (error: Error): void => {
    broken = error;
  };
  client.on('error', discard);
  try {
    return await work(client, discard);
  } finally {
    client.off('error', discard);
    client.release(broken);
  }
}

/**
 * Repeats `work` if it times out while it waits for a lock. Each wait should be short, because
 * other statements queue behind the waiting statement.
 * @throws 55P03 if all attempts fail
 */
export function withLockTries<T>(work: () => Promise<T>): Promise<T> {
  return retry({ tries: LOCK_TRIES, pauseMs: LOCK_PAUSE_MS, isTransient: isLockTimeout }, work);
}

/** Waits for all transactions that wrote before this call. Returns false after `timeoutMs`. */
export async function earlierWritersEnded(db: Database, timeoutMs: number): Promise<boolean> {
  const mark =
    (await findValue<string>(db)`select pg_snapshot_xmax(pg_current_snapshot())::text as mark`) ?? '0';
  return pollUntil(
    { everyMs: WRITERS_POLL_MS, forMs: timeoutMs },
    () => isTrue(db)`select pg_snapshot_xmin(pg_current_snapshot()) >= ${mark}::xid8 as ended`,
  );
}
