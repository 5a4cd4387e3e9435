import pg from 'pg';
import { ConfigError, TransientError } from '../domain/errors.ts';

const connectionTimeoutMillis = 10_000;
/** The number of comparisons: while others use the pooler, two connections may get different sessions by chance. */
const rounds = 3;

export const pooling = {
  found:
    'DATABASE_URL leads to a pooler that gives every transaction another session of the server (transaction or statement pooling)',
  advice: 'Use session pooling, or the address of the server itself: docs/hosted-postgres.md.',
} as const;

/** Throws `ConfigError` if DATABASE_URL leads to a pooler that lends sessions by the transaction or by the statement. */
export async function requireOwnSession(client: pg.ClientBase, url: string): Promise<void> {
  if (await isPooled(client, url)) throw new ConfigError(`${pooling.found}. ${pooling.advice}`);
}

/**
 * Tells whether a pooler lends sessions by the transaction or by the statement. Behind one, `listen` receives nothing, the
 * search path and name of a session are some other client's, and terminating the session of a lost worker may hit another
 * worker. Only behind such a pooler do two open connections share a session, or change theirs.
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

/** Connects, and runs a statement: a session pooler accepts a connection at once, and makes its first statement wait for a session. */
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
  // The pooler cannot give the first connection a session that the other holds.
  await other.query('begin');
  const held = await readPid(other);
  const isMoved = (await readPid(client)) !== session || held === session;
  await other.query('rollback');
  return isMoved;
}

async function readPid(client: pg.ClientBase): Promise<number | undefined> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  return rows[0]?.pid;
}
