import { join } from 'node:path';
import { pino } from 'pino';
import { layoutOf } from '../../../src/postgres/embedded/layout.ts';
import { readPostmasterFile } from '../../../src/postgres/embedded/postmaster-file.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../../src/postgres/embedded/start.ts';

/** A server of the soak's own: its processes outlive it, as they would a database on another machine. */
export interface PostgresServer {
  readonly url: string;
  /** SIGQUIT to the postmaster, as `pg_ctl stop -m immediate`: no checkpoint, no goodbye. */
  stopHard(): Promise<void>;
  /** Recovers, and serves again under the same address. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

// A server that is killed loses nothing for want of fsync, only a machine that is: we kill servers.
const settings = { fsync: 'off', max_connections: '150' };

export async function startPostgresServer(folder: string): Promise<PostgresServer> {
  const dataDir = join(folder, 'postgres');
  const log = pino({ level: 'silent' });
  let server: EmbeddedPostgres = await startEmbeddedPostgres({ dataDir, log, settings });
  const { url } = server;
  return {
    url,
    async stopHard() {
      const postmaster = await readPostmasterFile(layoutOf(dataDir).data);
      if (postmaster === undefined) throw new Error('no postmaster runs');
      process.kill(postmaster.pid, 'SIGQUIT');
      await server.exited;
    },
    async start() {
      server = await startEmbeddedPostgres({ dataDir, log, settings, port: Number(new URL(url).port) });
      if (server.url !== url) throw new Error('the server came back under another address');
    },
    stop: () => server.stop(),
  };
}
