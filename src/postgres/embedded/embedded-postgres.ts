/**
 * Runs PostgreSQL from an npm package on sluice's data directory, as a child of this process. Other
 * folders import only `embeddedPostgres`. Start reading at `start`.
 *
 * Guarantees: only one server uses a data directory, and the server ends with this process.
 * Committed data survives. Only this machine can connect, and only the owner can read the password.
 */
import { dirname, resolve } from 'node:path';
import type { Logger } from 'pino';
import { growing, retry } from '../../base/retry.ts';
import { withDeadline } from '../../base/timers.ts';
import { isFull, readDisk } from '../../files/disk.ts';
import { provideBinaries } from './binaries.ts';
import { awaitPreviousServer, readPostmasterFile, SHUTDOWN_DEADLINE_MS } from './claims.ts';
import { createCluster, inspectMachine, serverSettings } from './cluster.ts';
import {
  EmbeddedPostgresError,
  ensureRoot,
  hasUsableData,
  layoutOf,
  readMajor,
  readPassword,
} from './data-directory.ts';
import {
  askVersion,
  type LaunchedServer,
  launchServer,
  type ServerProcess,
  serverUrl,
} from './launch-server.ts';
import { chooseAccount } from './run-program.ts';

/**
 * Maximum time of an "immediate" shutdown, which follows if the clean shutdown takes too long.
 * After this time, the server is killed (SIGKILL).
 */
const immediateDeadlineMs = 5_000;
const minRestartPauseMs = 200;
const maxRestartPauseMs = 10_000;

/**
 * A running server. It keeps this process alive until `stop` is called, and ends with this process.
 */
export interface EmbeddedPostgres {
  /** postgres://sluice:<password>@127.0.0.1:<port>/sluice */
  readonly url: string;
  readonly version: string;
  /** Resolves when the server process has ended. Never rejects. */
  readonly exited: Promise<void>;
  /** Stops the server cleanly, or by force after a deadline. May be called repeatedly. */
  stop(): Promise<void>;
}

interface EmbeddedPostgresOptions {
  /** Directory for data, password and log. It is created on first use. */
  readonly dataDir: string;
  readonly log: Logger;
  /**
   * Settings of PostgreSQL that override the defaults. They cannot change the address and the port.
   */
  readonly settings?: Record<string, string>;
  readonly port?: number;
}

export const embeddedPostgres = {
  start,
  startAndKeepRunning,
  findRunning,
  /** True if a server of any version was ever started here. */
  hasData: async (dataDir: string) => (await readMajor(layoutOf(dataDir))) !== undefined,
  isRefusal: (error: unknown): error is Error => error instanceof EmbeddedPostgresError,
  isInUse: (error: unknown) => error instanceof EmbeddedPostgresError && error.isInUse,
} as const;

/** @throws EmbeddedPostgresError if a server is already running (`isInUse`) or cannot run here */
async function start(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { log } = options;
  const startedAt = performance.now();
  const layout = layoutOf(resolve(options.dataDir));
  await ensureRoot(layout);
  await awaitPreviousServer(layout, log);
  const account = await chooseAccount(layout);
  const binaries = await provideBinaries({ account, layout, log });
  const context = { layout, account, binaries };
  if (!(await hasUsableData(layout, binaries.major))) await createCluster(context);
  const settings = { ...serverSettings(await inspectMachine()), ...options.settings };
  const password = await readPassword(layout);
  if (password === undefined) throw new EmbeddedPostgresError(`${layout.password} is missing: restore it`);
  const server = await launchServer({ ...context, password, settings, port: options.port });
  const ms = Math.round(performance.now() - startedAt);
  log.info({ postgres_pid: server.process.pid, version: server.version, ms }, 'embedded Postgres is ready');
  return watch(server, log);
}

function watch(server: LaunchedServer, log: Logger): EmbeddedPostgres {
  let stopping: Promise<void> | undefined;
  const exited = server.process.exited.then((ending) => {
    if (stopping === undefined) log.error({ ending }, 'embedded Postgres ended unexpectedly');
  });
  const stop = async (): Promise<void> => {
    await stopServer(server.process, log);
    await exited;
  };
  return {
    url: server.url,
    version: server.version,
    exited,
    stop: () => {
      stopping ??= stop();
      return stopping;
    },
  };
}

/**
 * Stops the server with a checkpoint, which spares the next start a recovery. If the checkpoint
 * takes too long, the server is stopped by force.
 */
async function stopServer(server: ServerProcess, log: Logger): Promise<void> {
  server.kill('SIGINT');
  if (await endsWithin(server, SHUTDOWN_DEADLINE_MS)) return;
  log.warn({ pid: server.pid }, 'embedded Postgres did not stop in time: ending it without a checkpoint');
  server.kill('SIGQUIT');
  if (await endsWithin(server, immediateDeadlineMs)) return;
  server.kill('SIGKILL');
  await server.exited;
}

function endsWithin(server: ServerProcess, deadlineMs: number): Promise<boolean> {
  return withDeadline(
    server.exited.then(() => true),
    deadlineMs,
    () => false,
  );
}

/**
 * Restarts a server that ends unexpectedly, on the same port, so that pools reconnect and
 * uncommitted work is repeated. `exited` resolves when the last server has ended.
 */
async function startAndKeepRunning(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const stopping = new AbortController();
  let server = await start(options);
  const { url, version } = server;
  const exited = (async () => {
    while (!stopping.signal.aborted) {
      await server.exited;
      if (stopping.signal.aborted) return;
      server = (await startAgain({ ...options, port: Number(new URL(url).port) }, stopping.signal)) ?? server;
    }
    // Stops a server that a restart in progress may have started.
    await server.stop();
  })();
  return {
    url,
    version,
    exited,
    async stop() {
      stopping.abort();
      await server.stop();
      await exited;
    },
  };
}

/**
 * Starts the server again. Repeats the attempt until it succeeds. Returns `undefined` if `signal`
 * is aborted first.
 */
function startAgain(
  options: EmbeddedPostgresOptions,
  signal: AbortSignal,
): Promise<EmbeddedPostgres | undefined> {
  const { log } = options;
  // sluice's own data directory, which the operator knows.
  const folder = dirname(options.dataDir);
  const pauseMs = growing(minRestartPauseMs, maxRestartPauseMs);
  const onRetry = async (err: unknown, _: number, retry_in_ms: number): Promise<void> => {
    const isDiskFull = await readDisk(folder).then(isFull, () => false);
    if (isDiskFull) log.error({ retry_in_ms }, `embedded Postgres has no room left on the disk of ${folder}`);
    else log.error({ err, retry_in_ms }, 'embedded Postgres could not be started again');
  };
  return retry({ pauseMs, signal, onRetry }, () => start(options)).catch(() => undefined);
}

/**
 * URL of the running server, or `undefined`. A successful login shows that the lock file is not
 * stale.
 */
async function findRunning(dataDir: string): Promise<string | undefined> {
  const layout = layoutOf(dataDir);
  const server = await readPostmasterFile(layout.data);
  const password = await readPassword(layout);
  if (server === undefined || password === undefined) return undefined;
  const url = serverUrl(server.port, password);
  try {
    await askVersion(url);
    return url;
  } catch {
    return undefined;
  }
}
