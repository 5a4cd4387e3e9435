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
  return onConnection(pool, async (client, discard) => {
    try {
      await client.query(options.asynchronous ? 'begin; set local synchronous_commit = off' : 'begin');
      const result = await work({ client, db: databaseOn(client) });
      await client.query('commit');
      return result;
    } catch (error) {
      await client.query('rollback').catch(discard);
      throw error;
    }
  });
}

/** Runs `work` on a connection of its own. One that was lost meanwhile, or that `work` discards, is not given to others. */
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
