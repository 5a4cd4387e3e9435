import type pg from 'pg';

/** Where records are written: on any connection, or within somebody's transaction. */
export type Connection = pg.Pool | pg.PoolClient;

/**
 * Writes records of one entity, all or none, in two steps: what must be there before (names in the catalogue,
 * partitions) is made outside of the transaction that the rows are written in, and may stay if that fails.
 */
export interface RecordWriter<T, Rows> {
  prepare(records: readonly T[]): Promise<Rows>;
  write(connection: Connection, rows: Rows): Promise<void>;
}
