import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants, type FileHandle, open, rename, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import { messageOf } from '../../base/errors.ts';
import { retry } from '../../base/retry.ts';
import { dataDirInUse, ownerSetting, readPostmasterFile } from './claims.ts';
import { type ClusterContext, databaseName, roleName } from './cluster.ts';
import {
  diskFull,
  EmbeddedPostgresError,
  exists,
  hasCode,
  type Layout,
  saysDiskFull,
} from './data-directory.ts';
import { type Account, cleanEnvironment, dataArgument, watchOverServer } from './run-program.ts';

const maxPorts = 5;
const pollMs = 15;
const answerDeadlineMs = 60_000;
/** Maximum time of a recovery. On a slow disk, replaying gigabytes of log takes minutes. */
const recoveryDeadlineMs = 30 * 60_000;
/** Maximum wait for the children of a killed server to end. */
const leftoverDeadlineMs = 60_000;
const leftoverPollMs = 100;
const maxLogBytes = 10 * 1024 * 1024;
const logTailBytes = 8_192;
const connectTimeoutMs = 5_000;

export interface LaunchedServer {
  readonly process: ServerProcess;
  readonly url: string;
  readonly version: string;
}

interface LaunchContext extends ClusterContext {
  readonly password: string;
  readonly settings: Readonly<Record<string, string>>;
  /** Port of the server. Default: any free port. */
  readonly port?: number | undefined;
}

/** Tries other ports if one is in use, and waits for the children of a killed server. */
export async function launchServer(context: LaunchContext): Promise<LaunchedServer> {
  let portsTried = 0;
  const isTransient = (error: unknown): boolean => {
    if (!(error instanceof EndedEarly)) return false;
    const isPortTaken = error.output.includes('Address already in use');
    const mayChoose = isPortTaken && context.port === undefined && ++portsTried < maxPorts;
    return mayChoose || error.output.includes('shared memory block');
  };
  try {
    return await retry({ forMs: leftoverDeadlineMs, pauseMs: leftoverPollMs, isTransient }, async () =>
      tryLaunch(context, context.port ?? (await findFreePort())),
    );
  } catch (error) {
    throw error instanceof EndedEarly ? await explainOutput(error.output, context) : error;
  }
}

/** Thrown if the server ended before it accepted a connection. */
class EndedEarly extends Error {
  readonly output: string;

  constructor(output: string) {
    super('the server ended');
    this.output = output;
  }
}

/** @throws EndedEarly */
async function tryLaunch(context: LaunchContext, port: number): Promise<LaunchedServer> {
  const { layout, account, password } = context;
  const log = await openServerLog(layout, account);
  try {
    const server = await spawnServer(context, port, log.file);
    const url = serverUrl(port, password);
    try {
      const version = await awaitReady(server, url);
      if (version !== undefined) return { process: server, url, version };
    } catch (error) {
      server.kill('SIGQUIT');
      await server.exited;
      throw error;
    }
    throw new EndedEarly(`${await readServerLog(layout, log.startsAt)}\n(${await server.exited})`);
  } finally {
    await log.file.close();
  }
}

/**
 * Settings that callers cannot override. There is no Unix socket, because its path must be short,
 * and permissions differ between systems.
 */
function address(port: number): Record<string, string> {
  return { port: String(port), listen_addresses: '127.0.0.1', unix_socket_directories: '' };
}

async function explainOutput(output: string, { layout }: LaunchContext): Promise<EmbeddedPostgresError> {
  const holder = output.includes('"postmaster.pid" already exists')
    ? await readPostmasterFile(layout.data)
    : undefined;
  if (holder !== undefined) return dataDirInUse(layout, holder.pid);
  if (saysDiskFull(output)) return diskFull(layout.root);
  return new EmbeddedPostgresError(
    `The embedded Postgres did not start. The end of ${layout.serverLog}:\n${output}`,
  );
}

/** SQLSTATE of the message "The database system is starting up". */
const cannotConnectNow = '57P03';

/** Returns the version after a login, or `undefined` if the process has ended. */
function awaitReady(server: ServerProcess, url: string): Promise<string | undefined> {
  const startedAt = Date.now();
  let isStarting = false;
  const isTransient = (error: unknown): boolean => {
    isStarting ||= hasCode(error, cannotConnectNow);
    return !isFinal(error) && Date.now() - startedAt <= (isStarting ? recoveryDeadlineMs : answerDeadlineMs);
  };
  const ask = async () => (server.hasExited() ? undefined : askVersion(url));
  return retry({ pauseMs: pollMs, isTransient }, ask).catch((error: unknown) => {
    throw refusal(error);
  });
}

/** Waiting does not help with classes 28 (authorization) and 3D (no such database). */
function isFinal(error: unknown): boolean {
  return error instanceof Error && 'code' in error && /^(28|3D)/.test(String(error.code));
}

function refusal(cause: unknown): EmbeddedPostgresError {
  const reason = messageOf(cause);
  return new EmbeddedPostgresError(`The embedded Postgres does not let us in: ${reason}`, { cause });
}

export interface ServerProcess {
  readonly pid: number;
  /** How the process ended ("exit code 1", "signal SIGKILL"). Never rejects. */
  readonly exited: Promise<string>;
  hasExited(): boolean;
  kill(signal: NodeJS.Signals): void;
}

/**
 * Starts the server in its own process group. Ctrl-C reaches a whole group and would stop the
 * server before the processes that use it.
 */
async function spawnServer(
  { layout, binaries, account, ...context }: LaunchContext,
  port: number,
  log: FileHandle,
): Promise<ServerProcess> {
  const settings = Object.entries({ ...context.settings, ...address(port), [ownerSetting]: process.pid });
  const options = settings.flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const child = spawn(binaries.postgres, ['-D', dataArgument(account, layout.data), ...options], {
    ...account,
    cwd: layout.data,
    env: cleanEnvironment,
    detached: true,
    stdio: ['ignore', log.fd, log.fd],
  });
  const exited = new Promise<string>((resolve) => {
    child.on('exit', (code, signal) => resolve(signal === null ? `exit code ${code}` : `signal ${signal}`));
    child.on('error', (error) => resolve(error.message));
  });
  if (child.pid === undefined)
    throw new EmbeddedPostgresError(`Postgres could not be started: ${await exited}`);
  void exited.then(watchOverServer(child.pid, account));
  return {
    pid: child.pid,
    exited,
    hasExited: () => child.exitCode !== null || child.signalCode !== null,
    kill: (signal) => void child.kill(signal),
  };
}

export function serverUrl(port: number, password: string): string {
  return `postgres://${roleName}:${password}@127.0.0.1:${port}/${databaseName}`;
}

/** SCRAM authenticates both sides, so the login fails at another server on the port. */
export async function askVersion(url: string): Promise<string> {
  // pg is imported only here, because some commands do not use a database.
  const { default: pg } = await import('pg');
  const client = new pg.Client({
    connectionString: url,
    ssl: false,
    connectionTimeoutMillis: connectTimeoutMs,
  });
  // A connection error can be ignored here, because the next statement then fails.
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query<{ server_version: string }>('show server_version');
    return rows[0]?.server_version ?? '';
  } finally {
    await client.end().catch(() => undefined);
  }
}

/**
 * Opens the log for appending. A large log is first renamed to `postgres.log.1`. `startsAt` is the
 * size of the log before this start. A symbolic link is not followed, because it could make root
 * write elsewhere.
 */
async function openServerLog(layout: Layout, account: Account | undefined) {
  const path = layout.serverLog;
  if ((await exists(path)) && (await stat(path)).size > maxLogBytes) await rename(path, `${path}.1`);
  const { O_APPEND, O_CREAT, O_NOFOLLOW, O_WRONLY } = constants;
  const file = await open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW, 0o600);
  // The account's owner may start sluice without root next time, and must be able to append.
  if (account !== undefined) await file.chown(account.uid, account.gid);
  return { file, startsAt: (await file.stat()).size };
}

/** Returns at most the last `logTailBytes` of the log, and nothing before `startsAt`. */
async function readServerLog(layout: Layout, startsAt: number): Promise<string> {
  const file = await open(layout.serverLog, 'r');
  try {
    const { size } = await file.stat();
    const from = Math.max(startsAt > size ? 0 : startsAt, size - logTailBytes);
    const { bytesRead, buffer } = await file.read(Buffer.alloc(size - from), 0, size - from, from);
    return buffer.toString('utf8', 0, bytesRead).trim();
  } finally {
    await file.close();
  }
}

/**
 * Returns a free port. Another program may take the port before the server opens it. The caller
 * then tries another port.
 */
async function findFreePort(): Promise<number> {
  const probe = createServer();
  probe.listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  await once(probe, 'close');
  if (address === null || typeof address === 'string') throw new Error('a TCP server has no port');
  return address.port;
}
