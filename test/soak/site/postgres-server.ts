import { join } from 'node:path';
import { pino } from 'pino';
import { layoutOf } from '../../../src/embedded-postgres/data-directory.ts';
import { type EmbeddedPostgres, embeddedPostgres } from '../../../src/embedded-postgres/embedded-postgres.ts';
import { readPostmasterFile } from '../../../src/embedded-postgres/previous-server.ts';

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
  let server: EmbeddedPostgres = await embeddedPostgres.start({ dataDir, log, settings });
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
      server = await embeddedPostgres.start({ dataDir, log, settings, port: Number(new URL(url).port) });
    },
    stop: () => server.stop(),
  };
}
