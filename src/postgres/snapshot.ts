import type pg from 'pg';
import type { Logger } from 'pino';
import { Fault } from '../domain/errors.ts';

/** A state of the database, held as long as an export reads. */
export interface Snapshot {
  readonly client: pg.PoolClient;
  readonly at: Date;
  readonly backendPid: number;
}

/** The time between two statements, in which the end of a file may have to be stored. */
const idleTimeout = '10min';

/**
 * Runs `work` on a snapshot, in a session called `name`. If the work fails or the signal aborts, the session is terminated: a server that
 * waits for us to read a result does not notice a request to cancel.
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
    if (session !== undefined) ending ??= endSession(pool, session, log);
  };
  // At once, whatever statement is under way.
  signal.addEventListener('abort', end, { once: true });
  try {
    session = await begin(client, name);
    signal.throwIfAborted();
    const result = await work({ client, at: session.at, backendPid: session.pid });
    await client.query('commit');
    client.release();
    return result;
  } catch (error) {
    // With an error the pool closes the connection, and has one to spare for ending the session.
    client.release(error instanceof Error ? error : new Error(String(error)));
    end();
    await ending;
    throw error;
  } finally {
    signal.removeEventListener('abort', end);
    client.off('error', onError);
  }
}

interface Session {
  readonly at: Date;
  readonly pid: number;
  /** Text, since it has more digits than a Date. */
  readonly startedAt: string;
}

async function begin(client: pg.PoolClient, name: string): Promise<Session> {
  await client.query('begin isolation level repeatable read read only');
  // Keeps the tables of events in place (stores/retirements.ts). LOCK takes no snapshot, the next statement does.
  await client.query('lock table event_retirements in row share mode');
  const { rows } = await client.query<Session>(
    `select
      statement_timestamp() as at,
      pid,
      backend_start::text as "startedAt",
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

/** The start tells the session from a later one of the same process id. */
async function endSession(pool: pg.Pool, { pid, startedAt }: Session, log: Logger): Promise<void> {
  try {
    await pool.query(
      'select pg_terminate_backend(pid) from pg_stat_activity where pid = $1 and backend_start = $2::timestamptz',
      [pid, startedAt],
    );
  } catch (error) {
    // It ends by itself as soon as it has something to send.
    log.warn({ err: error, pid }, 'the session of an export could not be ended');
  }
}

/** Counts the rows of a select. Throws 57014 after `timeoutMs`. */
export async function countWithin(client: pg.PoolClient, select: string, timeoutMs: number): Promise<number> {
  await client.query(`set local statement_timeout = ${timeoutMs}`);
  const { rows } = await client.query<{ count: number }>(`select count(*) from (${select}) as row`);
  await client.query('set local statement_timeout = 0');
  return rows[0]?.count ?? 0;
}
