import { setTimeout as delay } from 'node:timers/promises';
import { awaitReady } from './await-ready.ts';
import type { ClusterContext } from './cluster-context.ts';
import { serverUrl } from './connection.ts';
import { diskFull, EmbeddedPostgresError, isDiskFull } from './errors.ts';
import { findFreePort } from './free-port.ts';
import { readPostmasterFile } from './postmaster-file.ts';
import { dataDirInUse } from './previous-server.ts';
import { writeServerFile } from './server-file.ts';
import { openServerLog, readServerLog } from './server-log.ts';
import { type ServerProcess, spawnServer } from './spawn-server.ts';

const maxPorts = 5;
const pollMs = 10;
/** How long the children of a server that was killed may take to notice and end. */
const leftoverDeadlineMs = 60_000;
const leftoverPollMs = 100;

export interface LaunchedServer {
  readonly process: ServerProcess;
  readonly url: string;
  readonly version: string;
}

export interface LaunchContext extends ClusterContext {
  readonly password: string;
  readonly settings: Readonly<Record<string, string>>;
  /** Tried first. */
  readonly port?: number | undefined;
}

/**
 * Starts the server and waits until it takes work. Two obstacles pass by themselves: a port lost to somebody
 * else in between costs another port, the last children of a killed server are waited for.
 */
export async function launchServer(context: LaunchContext): Promise<LaunchedServer> {
  const leftoverDeadline = Date.now() + leftoverDeadlineMs;
  let portsTried = 0;
  for (;;) {
    const preferred = portsTried === 0 ? context.port : undefined;
    const launched = await tryLaunch(context, preferred ?? (await findFreePort()));
    if (typeof launched === 'object') return launched;
    const portTaken = launched.includes('Address already in use') && ++portsTried < maxPorts;
    const leftovers = launched.includes('shared memory block') && Date.now() < leftoverDeadline;
    if (!portTaken && !leftovers) throw await explain(launched, context);
    if (leftovers) await delay(leftoverPollMs);
  }
}

/** The running server, or what it wrote before it gave up. */
async function tryLaunch(context: LaunchContext, port: number): Promise<LaunchedServer | string> {
  const { layout, account, binaries, password } = context;
  const log = await openServerLog(layout, account);
  try {
    const settings = { ...context.settings, ...address(port) };
    const { postgres } = binaries;
    const server = await spawnServer({ postgres, data: layout.data, account, settings, logFile: log.file });
    const url = serverUrl(port, password);
    try {
      await announce(server, context, port);
      const version = await awaitReady(server, url);
      if (version !== undefined) return { process: server, url, version };
    } catch (error) {
      server.kill('SIGQUIT');
      await server.exited;
      throw error;
    }
    return `${await readServerLog(layout, log.startsAt)}\n(${await server.exited})`;
  } finally {
    await log.file.close();
  }
}

/** Not for the caller to change: this machine only, TCP only (a socket's path has a short limit and other rights). */
function address(port: number): Record<string, string> {
  return { port: String(port), listen_addresses: '127.0.0.1', unix_socket_directories: '' };
}

/** Writes server.json as soon as the server holds the lock on its directory: not before, it may be another's. */
async function announce(server: ServerProcess, context: LaunchContext, port: number): Promise<void> {
  const { layout, binaries } = context;
  while (!server.hasExited()) {
    if ((await readPostmasterFile(layout.data))?.pid === server.pid) {
      const [pid, ownerPid] = [server.pid, process.pid];
      const { major: majorVersion } = binaries;
      const passwordFile = layout.password;
      return writeServerFile(layout, { pid, ownerPid, port, majorVersion, passwordFile });
    }
    await Promise.race([delay(pollMs), server.exited]);
  }
}

async function explain(output: string, { layout }: LaunchContext): Promise<EmbeddedPostgresError> {
  const holder = output.includes('"postmaster.pid" already exists')
    ? await readPostmasterFile(layout.data)
    : undefined;
  if (holder !== undefined) return dataDirInUse(layout, holder.pid);
  if (isDiskFull(output)) return diskFull(layout.root);
  return new EmbeddedPostgresError(
    `The embedded Postgres did not start. The end of ${layout.serverLog}:\n${output}`,
  );
}
