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

export interface PoolOptions {
  readonly url: string;
  readonly max: number;
  readonly applicationName: string;
  readonly connectionTimeoutMs?: number;
  /** The server's timeout of a statement; the server's own setting by default. */
  readonly statementTimeoutMs?: number;
  /** Finds connections of the pool that went silent; default: nobody does. */
  readonly monitor?: ConnectionMonitor;
}

/** A caller that finds no free connection for so long is told that the database is away. */
const connectionTimeoutMillis = 10_000;
const idleTimeoutMillis = 30_000;

/** The pool of watchers has a connection to check the database, and one to read figures. */
const watchConnections = 2;
const watchConnectionTimeoutMs = 1_500;
const watchStatementTimeoutMs = 5_000;

/** A pool whose sessions look into schema `sluice` first, speak UTC, and read bigint as number: none of ours comes near 2^53. */
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
  // A connection that is lost while it is checked out tells its query, and emits an error that nobody but us hears:
  // neither pg nor Kysely listens then, and an error event without a listener ends the process.
  pool.on('connect', (client) => client.on('error', () => undefined));
  // The pool reports and replaces a connection that is lost while it is idle; callers may listen too.
  pool.on('error', () => undefined);
  return pool;
}

/** Returns the `onConnect` of a pool, which sets up and watches each session: poolers refuse connections that bring `options`. */
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
/** Creates a pool for health checks and figures, apart from the workers' connections. It opens none before the first question. */
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

/** Throws unless the database answers and takes writes. Gives up a silent connection, so that the next question follows the address. */
export async function checkDatabase(watch: pg.Pool): Promise<void> {
  const { rows } = await watch.query<{ readOnly: string }>(
    withTimeout(`select current_setting('transaction_read_only') as "readOnly"`, watchConnectionTimeoutMs),
  );
  if (rows[0]?.readOnly !== 'off') throw new Error('the database is read-only');
}

/** Runs a statement that reads figures, and gives it up after READ_TIMEOUT_MS. */
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

/** `query_timeout` is how long we wait for the answer; pg knows it, its types do not. */
function withTimeout(text: string, timeoutMs: number): pg.QueryConfig {
  return { text, query_timeout: timeoutMs } as pg.QueryConfig;
}

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

/** Opens a pool of its own: no record or upload waits for reads, whose statements end after READ_TIMEOUT_MS. */
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
