import type { LimitFunction } from 'p-limit';
import pLimit from 'p-limit';
import type pg from 'pg';
import type { Logger } from 'pino';
import { READ_TIMEOUT_MS } from '../domain/limits.ts';
import type { ConnectionMonitor } from './connection-monitor.ts';
import { createDatabase, type Database } from './database.ts';
import { createPool } from './pool.ts';

/** For what callers only look at. */
export interface Reader {
  readonly db: Database;
  readonly pool: pg.Pool;
  /** Statements that go through many rows wait here for their turn, so that those of a few rows find a connection. */
  readonly inTurn: LimitFunction;
}

export interface ReaderOptions {
  readonly databaseUrl: string;
  readonly log: Logger;
  readonly role: string;
  readonly connections: number;
}

/** On connections of its own: nobody's record or upload waits for them, and their statements end after READ_TIMEOUT_MS. */
export function openReader(options: ReaderOptions, monitor: ConnectionMonitor): Reader {
  const pool = createPool({
    monitor,
    url: options.databaseUrl,
    max: options.connections,
    applicationName: `sluice ${options.role} reads`,
    connectionTimeoutMs: READ_TIMEOUT_MS,
    statementTimeoutMs: READ_TIMEOUT_MS,
  });
  pool.on('error', (error) => options.log.warn({ err: error }, 'idle database connection lost'));
  return readerOn(pool, options.connections);
}

export function readerOn(pool: pg.Pool, connections: number): Reader {
  const db = createDatabase(pool);
  return { db, pool, inTurn: pLimit(Math.max(1, Math.floor(connections / 2))) };
}

/** Reads piece by piece, each in its turn, so that others have theirs in between. */
export async function* takeTurns<T>(pieces: AsyncIterable<T>, inTurn: LimitFunction): AsyncGenerator<T> {
  const source = pieces[Symbol.asyncIterator]();
  try {
    for (;;) {
      const piece = await inTurn(() => source.next());
      if (piece.done === true) return;
      yield piece.value;
    }
  } finally {
    await source.return?.();
  }
}
