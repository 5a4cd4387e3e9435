import type pg from 'pg';
import type { Logger } from 'pino';
import { Fault } from '../../domain/errors.ts';

/** One state of the database, held for as long as an export reads. */
export interface Snapshot {
  readonly client: pg.PoolClient;
  /** All that was committed by then is in it. */
  readonly at: Date;
  readonly backendPid: number;
}

/** How long the database waits for us between two statements, while the end of a file is being stored. */
const idleTimeout = '10min';

/**
 * Runs `work` on a snapshot. If it fails, or the signal aborts, the session is ended: a statement under way cannot be
 * stopped gently, since a server that waits for us to read hears of nothing but its own end. `name` is what others know
 * the session by, until it ends.
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
    // With an error the pool closes the connection; after that there is one to spare for what follows.
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
  /** As text: it has more digits than a Date. */
  readonly startedAt: string;
}

async function begin(client: pg.PoolClient, name: string): Promise<Session> {
  await client.query('begin isolation level repeatable read read only');
  // No table of events is taken from under it; see src/postgres/stores/retirements.ts. LOCK takes no snapshot.
  await client.query('lock table event_retirements in row share mode');
  // The next statement does.
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
