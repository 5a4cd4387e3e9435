import pg from 'pg';
import type { Logger } from 'pino';
import { Fault, TransientError } from '../base/errors.ts';

export type SessionSettings = Readonly<Record<string, string>>;

/** If a connection has no traffic for this time, the operating system or the server probes it. */
export const KEEP_ALIVE_IDLE_MS = 5_000;

/** The server notices a failed machine after 5 + 3 · 3 seconds. */
const keepAlive: SessionSettings = {
  tcp_keepalives_idle: `${KEEP_ALIVE_IDLE_MS / 1000}`,
  tcp_keepalives_interval: '3',
  tcp_keepalives_count: '3',
  tcp_user_timeout: '14000',
};
/**
 * Even during a statement or a wait for a lock, the server checks every two seconds that this
 * process is connected, so a killed process cannot commit much later. A server on Windows refuses
 * this setting.
 */
const checkInterval = { client_connection_check_interval: '2000' };

const connectMs = 3_000;
const answerMs = 5_000;
const endMs = 1_000;

/** Identifies a session. A later session with the same pid has another start time. */
export interface PostgresSession {
  readonly pid: number;
  /** Seconds since 1970, as text that does not depend on session settings. */
  readonly startedAt: string;
}

export async function readSession(
  client: pg.ClientBase,
  settings: SessionSettings = {},
): Promise<PostgresSession> {
  const desired = { ...keepAlive, ...settings };
  try {
    return await setUp(client, { ...desired, ...checkInterval });
  } catch (error) {
    if (!isRefusedSetting(error)) throw error;
    return setUp(client, desired);
  }
}

async function setUp(client: pg.ClientBase, settings: SessionSettings): Promise<PostgresSession> {
  const { rows } = await client.query<PostgresSession>(
    `select pid, extract(epoch from backend_start)::text as "startedAt", s.*
     from pg_stat_get_activity(pg_backend_pid()),
       (select count(set_config(name, value, false)) from unnest($1::text[], $2::text[]) as s (name, value)) s`,
    [Object.keys(settings), Object.values(settings)],
  );
  const [session] = rows;
  if (session === undefined) throw new Error('the session is not among those of the server');
  return { pid: session.pid, startedAt: session.startedAt };
}

/**
 * True if the server refuses the value of a setting (22023) or does not know the setting (42704).
 */
function isRefusedSetting(error: unknown): boolean {
  return error instanceof pg.DatabaseError && (error.code === '22023' || error.code === '42704');
}

export async function askServer<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'sluice monitor',
    connectionTimeoutMillis: connectMs,
    query_timeout: answerMs,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await work(client);
  } finally {
    // The end of the connection is not awaited, because this connection may become silent, too.
    void client.end().catch(() => undefined);
  }
}

const listedSessions = `unnest($1::int[], $2::text[]) with ordinality as g (pid, started_at, place)`;
const isListed = `a.pid = g.pid and extract(epoch from a.backend_start)::text = g.started_at`;

/**
 * Returns `null` for each session that works or waits for others. For any other session, returns a
 * string that stays the same until the session works.
 */
export async function readActivities(
  client: pg.Client,
  sessions: readonly PostgresSession[],
): Promise<(string | null)[]> {
  const { rows } = await client.query<{ evidence: string | null }>(
    `select
       case
         when a.pid is null then 'it is gone'
         when a.wait_event_type = 'Client' then concat_ws(' ', a.wait_event, c.bytes_processed)
       end as evidence
     from ${listedSessions}
     left join pg_stat_activity a on ${isListed}
     left join pg_stat_progress_copy c on c.pid = a.pid
     order by g.place`,
    asArrays(sessions),
  );
  return rows.map(({ evidence }) => evidence);
}

export async function endSessions(
  client: pg.Client | pg.Pool,
  sessions: readonly PostgresSession[],
): Promise<void> {
  // The first statement ends all sessions without waiting. When the second statement waits for each
  // session, most of them have already ended.
  for (const timeoutMs of [0, endMs]) {
    await client.query(
      `select pg_terminate_backend(a.pid, $3) from ${listedSessions} join pg_stat_activity a on ${isListed}`,
      [...asArrays(sessions), timeoutMs],
    );
  }
}

function asArrays(sessions: readonly PostgresSession[]): [number[], string[]] {
  return [sessions.map(({ pid }) => pid), sessions.map(({ startedAt }) => startedAt)];
}

const connectionTimeoutMillis = 10_000;
/**
 * Number of comparisons. One comparison is not enough, because a busy pooler may happen to give two
 * connections different sessions.
 */
const rounds = 3;

export const pooling = {
  fault:
    'DATABASE_URL leads to a pooler that gives every transaction another session of the server (transaction or statement pooling)',
  advice: 'Use session pooling, or the address of the server itself: docs/hosted-postgres.md.',
} as const;

/**
 * True for a pooler that lends a session for one transaction or statement: two connections share a
 * session, or the session of a connection changes. LISTEN then fails, settings affect other
 * clients, and ending a lost session could end the session of a working process.
 */
export async function isPooled(client: pg.ClientBase, url: string): Promise<boolean> {
  const other = new pg.Client({
    connectionString: url,
    application_name: 'sluice look',
    connectionTimeoutMillis,
    query_timeout: connectionTimeoutMillis,
  });
  other.on('error', () => undefined);
  try {
    await connect(other);
    for (let round = 0; round < rounds; round++) if (await isShared(client, other)) return true;
    return false;
  } finally {
    await other.end().catch(() => undefined);
  }
}

/** A pooler may accept a connection before it has a session, so a statement is run, too. */
async function connect(other: pg.Client): Promise<void> {
  try {
    await other.connect();
    await readPid(other);
  } catch (error) {
    if (!(error instanceof Error && /timeout/i.test(error.message))) throw error;
    throw new TransientError(
      'The database answers one connection but not a second one. Behind a pooler, raise the number of sessions that it may open (docs/hosted-postgres.md).',
      { cause: error },
    );
  }
}

async function isShared(client: pg.ClientBase, other: pg.Client): Promise<boolean> {
  const session = await readPid(client);
  if ((await readPid(other)) === session) return true;
  // The transaction keeps its session busy. A sharing pooler now gives `client` another session.
  await other.query('begin');
  const busySession = await readPid(other);
  const isMoved = (await readPid(client)) !== session || busySession === session;
  await other.query('rollback');
  return isMoved;
}

async function readPid(client: pg.ClientBase): Promise<number | undefined> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  return rows[0]?.pid;
}

export interface Snapshot {
  readonly client: pg.PoolClient;
  readonly at: Date;
  /**
   * Cursor that represents the transactions visible in the snapshot. A later export can continue
   * after them.
   */
  readonly cursor: string;
  readonly backendPid: number;
}

/**
 * Limit for idle sessions of exports. An export runs no statement while the last part of a file is
 * stored.
 */
const idleTimeout = '10min';

/**
 * An abort ends the whole session: the server does not notice a cancel request while nobody reads
 * its output.
 */
export async function inSnapshot<T>(
  { pool, log }: { readonly pool: pg.Pool; readonly log: Logger },
  { name, signal }: { readonly name: string; readonly signal: AbortSignal },
  work: (snapshot: Snapshot) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const client = await pool.connect();
  const onError = (): void => undefined;
  client.on('error', onError);
  let session: Session | undefined;
  let ending: Promise<void> | undefined;
  const end = (): void => {
    if (session === undefined) return;
    const { pid } = session;
    ending ??= endSessions(pool, [session]).catch((error: unknown) => {
      // The session then ends when the server next sends data.
      log.warn({ err: error, pid }, 'the session of an export could not be ended');
    });
  };
  signal.addEventListener('abort', end, { once: true });
  try {
    session = await begin(client, name);
    signal.throwIfAborted();
    const result = await work({ client, at: session.at, cursor: session.cursor, backendPid: session.pid });
    await client.query('commit');
    client.release();
    return result;
  } catch (error) {
    // The pool closes this connection. The pool can then open another connection, which `end`
    // needs.
    client.release(error instanceof Error ? error : new Error(String(error)));
    end();
    await ending;
    throw error;
  } finally {
    signal.removeEventListener('abort', end);
    client.off('error', onError);
  }
}

interface Session extends PostgresSession {
  readonly at: Date;
  readonly cursor: string;
}

async function begin(client: pg.PoolClient, name: string): Promise<Session> {
  await client.query('begin isolation level repeatable read read only');
  // No table of events can be retired or removed now. The snapshot begins with the next statement,
  // so it is never older than the lock.
  await client.query('lock table event_retirements in row share mode');
  const { rows } = await client.query<Session>(
    `select
      statement_timestamp() as at,
      sluice.current_cursor() as cursor,
      pid,
      extract(epoch from backend_start)::text as "startedAt",
      set_config('application_name', $2, true),
      set_config('idle_in_transaction_session_timeout', $1, true),
      set_config('statement_timeout', '0', true),
      set_config('timezone', 'UTC', true),
      set_config('jit', 'off', true)
    from pg_stat_activity
    where pid = pg_backend_pid()`,
    [idleTimeout, name],
  );
  const [session] = rows;
  if (session === undefined) throw new Fault('the session is not listed in pg_stat_activity');
  return session;
}

/**
 * Counts the rows of a query.
 * @throws 57014 after `timeoutMs`
 */
export async function countWithin(client: pg.PoolClient, select: string, timeoutMs: number): Promise<number> {
  await client.query(`set local statement_timeout = ${timeoutMs}`);
  const { rows } = await client.query<{ count: number }>(`select count(*) from (${select}) as row`);
  await client.query('set local statement_timeout = 0');
  return rows[0]?.count ?? 0;
}
