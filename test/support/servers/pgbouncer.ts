import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { waitFor } from '../wait-for.ts';
import { connectTo } from './connect.ts';
import { freePort } from './free-port.ts';
import { databaseUrl } from './postgres-server.ts';
import { withSystemFolders } from './system-tools.ts';

const poolModes = ['session', 'transaction', 'statement'] as const;
export type PoolMode = (typeof poolModes)[number];

export interface PgBouncer {
  readonly url: string;
  stop(): Promise<void>;
}

/** PgBouncer refuses to run as root. */
const account = process.geteuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

/**
 * Starts PgBouncer in front of the database at `url`, with default settings and at most `poolSize`
 * connections to the server.
 */
export async function startPgBouncer(url: string, mode: PoolMode, poolSize = 100): Promise<PgBouncer> {
  const { hostname, port: serverPort, username, password, pathname } = new URL(url);
  const folder = await mkdtemp(join(tmpdir(), 'sluice-pgbouncer-'));
  const port = await freePort();
  const file = join(folder, 'pgbouncer.ini');
  const users = join(folder, 'userlist.txt');
  await writeFile(users, `"${username}" "${password}"\n`);
  await writeFile(
    file,
    `[databases]
* = host=${hostname} port=${serverPort}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${users}
pool_mode = ${mode}
default_pool_size = ${poolSize}
`,
  );
  if (account.uid !== undefined)
    for (const path of [folder, file, users]) await chown(path, account.uid, account.gid);
  const child = spawn('pgbouncer', [file], { stdio: 'ignore', env: withSystemFolders(), ...account });
  const through = new URL(databaseUrl(url, pathname.slice(1)));
  through.host = `127.0.0.1:${port}`;
  await waitFor('pgbouncer', () => connectTo(through.href, (client) => client.query('select')));
  return {
    url: through.href,
    async stop() {
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
