import type { LimitFunction } from 'p-limit';
import pLimit from 'p-limit';
import pg from 'pg';
import type { Logger } from 'pino';
import { Fault } from '../base/errors.ts';
import { READ_TIMEOUT_MS } from '../base/limits.ts';
import type { ConnectionMonitor } from './connection-monitor.ts';
import { createDatabase, type Database } from './database.ts';
import { readSession, type SessionSettings } from './session.ts';

const INT8 = 20;
const INT8_ARRAY = 1016;

interface PoolOptions {
  readonly url: string;
  readonly max: number;
  readonly applicationName: string;
  readonly connectionTimeoutMs?: number;
  /** Maximum time of a statement. Default: the server's `statement_timeout`. */
  readonly statementTimeoutMs?: number;
  readonly monitor?: ConnectionMonitor;
}

/** If no connection is free after this time, the database counts as unavailable. */
const connectionTimeoutMillis = 10_000;
const idleTimeoutMillis = 30_000;

/** Number of connections: one for health checks, and one for figures. */
const watchConnections = 2;
const watchConnectionTimeoutMs = 1_500;
const watchStatementTimeoutMs = 5_000;

/**
 * Sessions use schema `sluice` and UTC. bigint is read as a number, because all stored values are
 * far below 2^53.
 */
export function createPool(options: PoolOptions): pg.Pool {
  const { monitor } = options;
  const pool = new pg.Pool({
    connectionString: options.url,
    max: options.max,
    application_name: options.applicationName,
    connectionTimeoutMillis: options.connectionTimeoutMs ?? connectionTimeoutMillis,
    idleTimeoutMillis,
    keepAlive: true,
    types: { getTypeParser },
    onConnect: sessionSetUp(sessionSettings(options.statementTimeoutMs), monitor),
  });
  monitor?.watchPool(pool);
  // A connection lost during a query also emits an error, which would end the process.
  pool.on('connect', (client) => client.on('error', () => undefined));
  // The pool replaces a lost idle connection.
  pool.on('error', () => undefined);
  return pool;
}

/**
 * Returns an `onConnect` that sets up a session. Poolers refuse the connection parameter `options`.
 */
export function sessionSetUp(
  settings: SessionSettings,
  monitor: ConnectionMonitor | undefined,
): (client: pg.ClientBase) => Promise<void> {
  return async (client) => {
    if (monitor === undefined) await readSession(client, settings);
    else await monitor.watch(client, { settings });
  };
}

function sessionSettings(statementTimeoutMs: number | undefined): SessionSettings {
  return {
    search_path: 'sluice,pg_catalog',
    timezone: 'UTC',
    idle_in_transaction_session_timeout: '15s',
    ...(statementTimeoutMs !== undefined && { statement_timeout: String(statementTimeoutMs) }),
  };
}

const getTypeParser = ((oid: number, format?: 'text' | 'binary') => {
  if (oid === INT8) return readInt8;
  if (oid === INT8_ARRAY) return (text: string) => (text === '{}' ? [] : text.slice(1, -1).split(','));
  return pg.types.getTypeParser(oid, format as 'text');
}) as typeof pg.types.getTypeParser;

function readInt8(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new Fault(`bigint ${text} is beyond a safe integer`);
  return value;
}
/**
 * Returns a pool for health checks and figures, separate from the workers' connections. Connects on
 * first use.
 */
export function createWatchPool(url: string, role: string, monitor?: ConnectionMonitor): pg.Pool {
  return createPool({
    url,
    max: watchConnections,
    applicationName: `sluice watch ${role}`,
    connectionTimeoutMs: watchConnectionTimeoutMs,
    statementTimeoutMs: watchStatementTimeoutMs,
    ...(monitor !== undefined && { monitor }),
  });
}

/**
 * Logs lost idle connections. While the pool is closing, lost connections are expected, because the
 * server may stop first.
 */
export function logLostConnections(pool: pg.Pool, log: Logger): void {
  pool.on('error', (error) => {
    if (!pool.ending) log.warn({ err: error }, 'idle database connection lost');
  });
}

/**
 * Throws unless the database accepts writes. Drops a connection that does not respond, so that the
 * next check may succeed.
 */
export async function checkDatabase(watch: pg.Pool): Promise<void> {
  const { rows } = await watch.query<{ readOnly: string }>(
    withTimeout(`select current_setting('transaction_read_only') as "readOnly"`, watchConnectionTimeoutMs),
  );
  if (rows[0]?.readOnly !== 'off') throw new Error('the database is read-only');
}

export async function readFigures<T>(
  pool: Pick<pg.Pool, 'query'> | pg.ClientBase,
  text: string,
  values: unknown[] = [],
): Promise<T[]> {
  return (await pool.query({ ...withTimeout(text, READ_TIMEOUT_MS), values })).rows as T[];
}

export async function readFigure<T>(
  pool: pg.Pool | pg.ClientBase,
  text: string,
  values: unknown[] = [],
): Promise<T> {
  const [row] = await readFigures<T>(pool, text, values);
  if (row === undefined) throw new Error('a row was expected');
  return row;
}

/** pg accepts `query_timeout` for a single statement, but its types lack the option. */
function withTimeout(text: string, timeoutMs: number): pg.QueryConfig {
  return { text, query_timeout: timeoutMs } as pg.QueryConfig;
}

export interface Reader {
  readonly db: Database;
  readonly pool: pg.Pool;
  /** Limits the statements that read many rows, so that short statements find a free connection. */
  readonly inTurn: LimitFunction;
}

interface ReaderOptions {
  readonly databaseUrl: string;
  readonly log: Logger;
  readonly role: string;
  readonly connections: number;
}

/**
 * Opens a separate pool for reads, so that reads do not delay writes. Statements end after
 * READ_TIMEOUT_MS.
 */
export function openReader(options: ReaderOptions, monitor: ConnectionMonitor): Reader {
  const pool = createPool({
    monitor,
    url: options.databaseUrl,
    max: options.connections,
    applicationName: `sluice ${options.role} reads`,
    connectionTimeoutMs: READ_TIMEOUT_MS,
    statementTimeoutMs: READ_TIMEOUT_MS,
  });
  logLostConnections(pool, options.log);
  return readerOn(pool, options.connections);
}

export function readerOn(pool: pg.Pool, connections: number): Reader {
  const db = createDatabase(pool);
  return { db, pool, inTurn: pLimit(Math.max(1, Math.floor(connections / 2))) };
}

/** Each piece waits for its turn, so that a long read does not block other readers. */
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
