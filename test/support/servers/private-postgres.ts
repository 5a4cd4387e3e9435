import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { isAlive, readPostmasterFile } from '../../../src/postgres/embedded/claims.ts';
import { layoutOf } from '../../../src/postgres/embedded/data-directory.ts';
import { type EmbeddedPostgres, embeddedPostgres } from '../../../src/postgres/embedded/embedded-postgres.ts';
import { waitFor } from '../wait-for.ts';

/**
 * A PostgreSQL server for one test, which may stop it abruptly and start it again at the same
 * address.
 */
export interface PrivatePostgres {
  readonly url: string;
  readonly dataDir: string;
  /**
   * Sends SIGQUIT to the postmaster, like `pg_ctl stop -m immediate`. The server writes no
   * checkpoint and ends all sessions.
   */
  stopImmediately(): Promise<void>;
  /** Starts the server again, including crash recovery. Resolves when it accepts connections. */
  start(): Promise<void>;
  close(): Promise<void>;
}

const log = pino({ level: 'silent' });

export async function startPrivatePostgres(): Promise<PrivatePostgres> {
  const dataDir = await mkdtemp(join(tmpdir(), 'sluice-private-postgres-'));
  // Without fsync, a stopped server loses only commits that are still in its own buffers. The tests
  // allow this loss.
  const settings = { fsync: 'off', max_connections: '150' };
  let server: EmbeddedPostgres = await embeddedPostgres.start({ dataDir, log, settings });
  const { url } = server;
  return {
    url,
    dataDir,
    async stopImmediately() {
      await signalPostmaster(dataDir, 'SIGQUIT');
      await server.exited;
    },
    async start() {
      server = await embeddedPostgres.start({ dataDir, log, settings, port: Number(new URL(url).port) });
    },
    async close() {
      await server.stop();
      await rm(dataDir, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
    },
  };
}

/**
 * Sends a signal to the postmaster that `embeddedPostgres.start` started in `dataDir`. Returns a
 * function that waits until the postmaster has exited.
 */
export async function signalPostmaster(
  dataDir: string,
  signal: NodeJS.Signals,
): Promise<() => Promise<void>> {
  const postmaster = await readPostmasterFile(layoutOf(dataDir).data);
  if (postmaster === undefined) throw new Error(`no postmaster runs on ${dataDir}`);
  process.kill(postmaster.pid, signal);
  return () =>
    waitFor(`the postmaster to end by ${signal}`, () => !isAlive(postmaster.pid), { everyMs: 1 }).then(
      () => undefined,
    );
}
