import type pg from 'pg';
import { type Database, databaseOn } from './database.ts';

export interface Transaction {
  readonly client: pg.PoolClient;
  readonly db: Database;
}

/**
 * Runs `work` in one transaction on one connection. `asynchronous` lets the commit return before it is on disk:
 * only for work whose ledger row is lost together with its rows and is then done again.
 */
export async function inTransaction<T>(
  pool: pg.Pool,
  work: (transaction: Transaction) => Promise<T>,
  options: { readonly asynchronous?: boolean } = {},
): Promise<T> {
  const client = await pool.connect();
  let broken: Error | undefined;
  const onError = (error: Error): void => {
    broken = error;
  };
  client.on('error', onError);
  try {
    await client.query(options.asynchronous ? 'begin; set local synchronous_commit = off' : 'begin');
    const result = await work({ client, db: databaseOn(client) });
    await client.query('commit');
    return result;
  } catch (error) {
    await client.query('rollback').catch((failure: Error) => {
      broken = failure;
    });
    throw error;
  } finally {
    client.off('error', onError);
    client.release(broken);
  }
}
